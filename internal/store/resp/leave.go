package resp

import "fmt"

// LeftError means that a connection was closed because of an error reply: the server cannot carry out
// commands, and a new connection to its address may lead to another server. Calls that were waiting or
// that come later on the connection get this error.
type LeftError struct {
	// Reply begins with the first word of the error reply.
	Reply string
}

// Error implements error.
func (e *LeftError) Error() string {
	return fmt.Sprintf("the connection was closed after the reply %q", e.Reply)
}

// LeaveAfter sets the judge of error replies to commands. The judge gets the code of a reply, which is
// its first word, and the words that follow, as far as they fit into 24 bytes. If the judge
// reports true, the connection is closed after the reply has been read. Set the judge before the
// first use of the Conn.
//
// Before Redis 7, the error of a script has the code of its cause in its middle, after " -". The judge
// then gets that code.
func (c *Conn) LeaveAfter(judge func(reply []byte) bool) { c.checker.judge = judge }

// judged asks the judge about an error reply, until the judge has once reported true.
func (c *Checker) judged() {
	in := &c.in
	if c.judge == nil || c.left != nil || in.top != '-' || in.kind != scalar {
		return
	}
	reply := in.text.bytes()
	if in.text.begins("ERR ") && in.cause.length > 0 {
		reply = in.cause.bytes()
	}
	if c.judge(reply) {
		c.left = &LeftError{Reply: string(reply)}
	}
}

// leaving gives the error of a connection that is to be closed, or nil.
func (c *Checker) leaving() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.left == nil {
		return nil
	}
	return c.left
}

// addCause finds the last word of a line that begins with "-", and the text after it.
func (in *incoming) addCause(b byte) {
	switch {
	case b == '-' && in.spaced:
		in.cause = word{}
		in.caused = true
	case in.caused:
		in.cause.add([]byte{b})
	}
	in.spaced = b == ' '
}
