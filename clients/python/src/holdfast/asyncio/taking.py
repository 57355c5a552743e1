"""A request that takes something, under way: what is known of it while its caller waits. Knows no connection."""


class Taking:
    def __init__(self) -> None:
        #: What has ended its caller's wait, such as a cancellation.
        self.interruption: BaseException | None = None
        #: Its task may be cancelled: nothing was sent yet, or the reply is being read, which goes on after a cancellation.
        self.can_be_cancelled = True
        #: The number of its connection at the server, if that is asked for: 0 if the user may not know it.
        self.client_id: int | None = None
