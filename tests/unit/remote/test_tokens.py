"""Tokens of leases that a worker of a server keeps."""

from rushes.remote.client import MOST_TOKENS, RemoteServer, ServerAddress


def test_a_worker_that_runs_for_weeks_keeps_only_the_newest_tokens() -> None:
    server = RemoteServer(ServerAddress("grpc://127.0.0.1:1", "token"))
    for fence in range(MOST_TOKENS + 1):
        server.keep_token("job.stage", fence, f"token {fence}")
    assert server.token("job.stage", 0) == ""
    assert server.token("job.stage", 1) == "token 1"
    assert server.token("job.stage", MOST_TOKENS) == f"token {MOST_TOKENS}"
