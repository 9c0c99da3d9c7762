package resp

import (
	"context"

	"github.com/headgate/headgate/cmd/internal/access"
	"github.com/headgate/headgate/cmd/internal/remote"
	"github.com/headgate/headgate/guard"
)

// Bounds of the commands that are decided together. They bound the memory of a connection at work.
const (
	mostCommands = 128
	mostDecided  = 32   // HG.DECIDE
	mostArgs     = 1024 // above them, no further command is parsed
	// outputSize bounds the answers before they are written. Nearly all are shorter than answerSize, and
	// the memory of longer ones is dropped: those of HG.DECIDE with a long location, or with very many limits.
	outputSize = bufferSize
	answerSize = 24 << 10
)

// work decides the commands that have arrived together: all limits that clients sent with one query to
// the store, and all HG.DECIDE with another. It is used by one connection at a time.
type work struct {
	reader

	commands []command
	sent     guard.SentBatch
	decide   remote.Batch
	out      writer
	guard    *guard.Guard
	caller   *caller
	client   *access.Client
}

// command is a parsed command.
type command struct {
	description *description // nil for an unknown command
	from, to    int          // of its arguments
	place       int          // in the batch that decides it
	fault       error
}

// begin begins commands of a caller.
func (w *work) begin(client *caller) {
	w.reset()
	w.commands = w.commands[:0]
	w.caller, w.client = client, client.client()
	w.sent.Begin(w.guard)
	w.decide.Begin(w.guard, w.client, true)
}

// read parses commands of b until a bound, and gives their length. last reports that the connection ends
// after them. The error is that of the protocol.
func (w *work) read(b []byte) (n int, last bool, err error) {
	for len(w.commands) < mostCommands && w.decide.Len() < mostDecided && len(w.args) < mostArgs {
		from := len(w.args)
		used, err := w.parse(b[n:])
		if used == 0 || err != nil {
			return n, err != nil, err
		}
		n += used
		if len(w.args) == from {
			continue
		}
		if w.add(from) {
			return n, true, nil
		}
		if w.commands[len(w.commands)-1].changesCaller() {
			return n, false, nil // The next commands are those of another caller.
		}
	}
	return n, false, nil
}

// add adds the command whose arguments begin at from. It reports whether the connection ends with it.
func (w *work) add(from int) (last bool) {
	args := w.args[from:]
	c := command{description: find(args[0]), from: from, to: len(w.args)}
	switch {
	case c.description == nil && forbidden(args[0]):
		return true
	case w.refused(&c), c.description == nil:
	case len(args) < c.description.least || len(args) > c.description.most:
		c.fault = fault("wrong number of arguments for '" + c.description.name + "' command")
	case c.description.kind == kindCell || c.description.kind == kindCrab:
		var s sent
		least, more := c.description.kind.parts()
		if s, c.fault = readSent(args, least, more); c.fault == nil {
			c.place = w.sent.Len()
			w.sent.Add(s.key, s.limit, s.quantity)
		}
	case c.description.kind == kindDecide:
		r, err := readRequest(args)
		if c.fault = err; err == nil {
			c.place = w.decide.Len()
			w.decide.Add(r)
		}
	}
	w.commands = append(w.commands, c)
	return c.description != nil && c.description.kind == kindQuit
}

// decideAll decides all commands.
func (w *work) decideAll(ctx context.Context) {
	w.sent.Decide(ctx)
	if w.decide.Len() > 0 {
		_ = w.decide.Decide(ctx) // Each answer has the error.
	}
}

// release drops what refers to the bytes of a connection.
func (w *work) release() {
	w.reset()
	clear(w.commands)
	w.commands, w.caller, w.client = w.commands[:0], nil, nil
	if w.decide.Len() > 0 {
		w.decide.Release()
	}
	if w.out.b = w.out.b[:0]; cap(w.out.b) > outputSize {
		w.out.b = nil
	}
}
