"""The questions of a slot to inference services: it has no network, so its worker passes them on."""

from collections.abc import Callable

from rushes.domain.errors import NeverWorks
from rushes.domain.task import Lease
from rushes.engines.http import InferenceSession
from rushes.engines.port import AsynchronousEngine
from rushes.engines.wire import CAPABILITIES, LARGEST, call_name

OpenSession = Callable[[str], InferenceSession | None]  # for a stage; None if its models do not run in a service
EndpointOf = Callable[[str], AsynchronousEngine | None]  # of a stage; None if its engine answers at once


class Inference:
    """Passes a slot's questions to the services of its stages, and to no other address."""

    def __init__(self, open_session: OpenSession, endpoint_of: EndpointOf = lambda _stage: None) -> None:
        self._open, self._endpoint_of = open_session, endpoint_of
        self._sessions: dict[str, InferenceSession] = {}
        self._answered: dict[str, AsynchronousEngine] = {}  # by the names of their calls
        self._closed = False

    def infer(self, lease: Lease, capability: str, call: bytes) -> bytes:
        """The answer to a call of a task.

        Raises:
            NeverWorks: its stage has no service, or there is no such call.
            EngineAway, InferenceFailed: see `InferenceSession.post`.
            AnswerPending: the engine answers later.
        """
        if capability not in CAPABILITIES or len(call) > LARGEST:
            raise NeverWorks("this is not a request for an inference service")
        if endpoint := self._endpoint_of(lease.stage):
            answer = endpoint.answer(lease.task, lease.fence, capability, call)
            self._answered[call_name(lease.task, capability, call)] = endpoint
            return answer
        session = self._sessions.get(lease.stage) or self._open(lease.stage)
        if session is None or self._closed:
            raise NeverWorks(f"the models of {lease.stage} do not run in an inference service")
        self._sessions[lease.stage] = session
        return session.post(capability, call)

    def done(self, lease: Lease) -> None:
        """The results of a task are stored: nobody needs its late answers any more."""
        for name, endpoint in self._answered.items():
            if name.startswith(f"{lease.task}/"):
                endpoint.forget(name)
        self._answered.clear()

    def close(self) -> None:
        """The slot is over: hang up."""
        self._closed = True
        for session in list(self._sessions.values()):
            session.close()
