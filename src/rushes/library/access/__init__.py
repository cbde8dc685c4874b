"""Accounts, tokens, throttled logins and the audit log."""
