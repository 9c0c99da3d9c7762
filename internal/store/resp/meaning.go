package resp

// replyEnded checks for replies that make rueidis panic, and removes the reply from the queue.
func (c *Checker) replyEnded() {
	in := &c.in
	if in.push {
		c.pushEnded()
		return
	}
	if in.top == '-' && !redirects(&in.text) {
		c.refusef("the redirection %q without an address", in.text.bytes())
		return
	}
	switch in.kind {
	case role:
		if in.top == '*' && in.kids == 0 && !in.negative {
			c.refusef("a ROLE without elements")
		}
	case pair:
		if in.top == '*' && in.kids != 2 && !in.negative {
			c.refusef("an address of %d elements", in.kids)
		}
	case pong:
		if !c.isPong() {
			c.refusef("%q in answer to a PING", in.text.bytes())
		}
	case subscription, unsubscription:
		if in.text.is("QUEUED") {
			c.refusef("a subscription in a transaction")
		}
	case table:
		c.modern = c.modern || in.top == '%' // HELLO's answer in RESP3.
	default:
	}
	c.judged()
	c.waits.pop()
}

// redirects reports whether a redirection error has its address: rueidis reads the third word
// of MOVED and ASK, and the second of REDIRECT, without a check.
func redirects(text *word) bool {
	t := *text
	if t.begins("ERR ") { // rueidis removes this prefix first.
		t.length = copy(t.text[:], text.text[4:text.length])
		t.spaces--
	}
	switch {
	case t.begins("MOVED"), t.begins("ASK"):
		return t.spaces >= 2
	case t.begins("REDIRECT"):
		return t.spaces >= 1
	}
	return true
}

// pushEnded checks a push message against the subscriptions.
func (c *Checker) pushEnded() {
	in := &c.in
	name := string(in.name.bytes())
	if in.top == '*' && name == "pong" {
		c.ponged()
		return
	}
	switch name {
	case "subscribe", "psubscribe", "ssubscribe":
		c.confirmed()
	case "unsubscribe", "punsubscribe", "sunsubscribe":
		if k, has := c.waits.next(); has && k == unsubscription {
			c.waits.pop()
		} else if c.confirms > 0 {
			c.refusef("an unsubscription amid the answers to a subscription")
		}
	case "message", "pmessage", "smessage":
		if in.kids != 3 && name[0] != 'p' || in.text.spaces+1 < wordsOf(&in.channel, &in.text) {
			c.refusef("an event on %q with too few words", in.channel.bytes())
		}
	}
}

// ponged checks RESP2's answer to a PING on a connection with subscriptions.
func (c *Checker) ponged() {
	if k, has := c.waits.next(); !has || k != pong && k != scalar {
		c.refusef("a pong that no PING awaits")
		return
	}
	c.waits.pop()
}

// confirmed checks the confirmation of one channel of a subscription.
func (c *Checker) confirmed() {
	if c.confirms > 0 {
		c.confirms--
		return
	}
	if k, has := c.waits.next(); !has || k != subscription {
		c.refusef("a subscription that was not asked for")
		return
	}
	c.confirms = c.waits.pop() - 1
}

// wordsOf gives the number of words of a sentinel's event that rueidis reads without a check.
func wordsOf(channel, text *word) int {
	switch string(channel.bytes()) {
	case "+switch-master":
		return 5
	case "+sentinel":
		return 4
	case "+reboot", "+slave", "+sdown", "-sdown":
		if text.begins("slave") {
			return 6
		}
		return 4
	}
	return 0
}

// isPong reports whether rueidis accepts a reply as the answer to the PING after an
// unsubscription.
func (c *Checker) isPong() bool {
	in := &c.in
	if in.top == '+' {
		return in.text.is("PONG")
	}
	return in.text.begins("LOADING") || in.text.begins("BUSY") || in.quote == quoted
}

// quote counts the matched characters of the text 'ping', with its quotes.
type quote uint8

const (
	ping         = "'ping'"
	quoted quote = quote(len(ping))
)

func (q *quote) add(b byte) {
	switch {
	case *q == quoted:
	case b == ping[*q]:
		*q++
	case b == ping[0]:
		*q = 1
	default:
		*q = 0
	}
}
