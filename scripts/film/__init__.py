"""The demo film: letters, shapes and scenes, drawn with numpy alone."""
