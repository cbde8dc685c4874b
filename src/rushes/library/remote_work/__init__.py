"""What workers without credentials may do here: hold tasks, and reach the files of what they hold."""
