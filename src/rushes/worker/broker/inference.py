"""The questions of a slot to inference services: it has no network, so its worker passes them on."""

from collections.abc import Callable

from rushes.domain.errors import NeverWorks
from rushes.engines.http import InferenceSession
from rushes.engines.wire import CAPABILITIES, LARGEST

OpenSession = Callable[[str], InferenceSession | None]  # for a stage; None if its models do not run in a service


class Inference:
    """Passes a slot's questions to the services of its stages, and to no other address."""

    def __init__(self, open_session: OpenSession) -> None:
        self._open = open_session
        self._sessions: dict[str, InferenceSession] = {}
        self._closed = False

    def infer(self, stage: str, capability: str, call: bytes) -> bytes:
        """The answer to a call.

        Raises:
            NeverWorks: this stage has no service, or there is no such call.
            EngineAway, InferenceFailed: see `InferenceSession.post`.
        """
        if capability not in CAPABILITIES or len(call) > LARGEST:
            raise NeverWorks("this is no question for an inference service")
        session = self._sessions.get(stage) or self._open(stage)
        if session is None or self._closed:
            raise NeverWorks(f"the models of {stage} do not run in an inference service")
        self._sessions[stage] = session
        return session.post(capability, call)

    def close(self) -> None:
        """The slot is over: hang up."""
        self._closed = True
        for session in list(self._sessions.values()):
            session.close()
