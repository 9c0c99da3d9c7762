package http1

// Watcher is implemented by a context that calls an Interrupter when it is done. A Watcher
// has at most one Interrupter, and replaces context.AfterFunc without its allocations.
type Watcher interface {
	// Watch calls Interrupt when the context is done; at once if it is done already.
	Watch(i Interrupter)
	// Unwatch ends Watch. After Unwatch returns, no call of Interrupt is running.
	Unwatch()
}

// Interrupter is work that can be interrupted from another goroutine.
type Interrupter interface {
	// Interrupt makes the work fail soon. Interrupt does not block.
	Interrupt()
}
