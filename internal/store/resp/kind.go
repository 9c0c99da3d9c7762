package resp

import "strings"

// kind is the kind of reply that a command may get.
type kind uint8

const (
	// scalar is a string, a number, a null or an error: the answer to scripts, and to most commands.
	scalar kind = iota
	// table is any reply: the answer to HELLO, CLUSTER and SENTINEL.
	table
	// role is an array with at least one element, or an error. rueidis reads the first without looking.
	role
	// pair is an array of two, a null or an error: the address of a master. rueidis reads both without looking.
	pair
	// subscription is answered by one push message for each channel, or by an error.
	subscription
	// unsubscription is answered by push messages, or by an error.
	unsubscription
	// pong follows an unsubscription, after which rueidis sends a PING and panics on other answers.
	pong
)

// kindOf classifies a command by its first two words.
func kindOf(name, second string) kind {
	switch strings.ToUpper(name) {
	case "HELLO", "CLUSTER":
		return table
	case "SENTINEL":
		if strings.EqualFold(second, "GET-MASTER-ADDR-BY-NAME") {
			return pair
		}
		return table
	case "ROLE":
		return role
	case "SUBSCRIBE", "PSUBSCRIBE", "SSUBSCRIBE":
		return subscription
	case "UNSUBSCRIBE", "PUNSUBSCRIBE", "SUNSUBSCRIBE":
		return unsubscription
	}
	return scalar
}

// bounds limit one reply.
type bounds struct {
	bytes    int64 // of the reply, with the framing
	text     int64 // of one string or line
	elements int64 // of the reply, as its headers announce them
	depth    int
}

const (
	// maxLine bounds errors and simple strings. Redis quotes at most some hundred bytes in its
	// errors.
	maxLine = 4 << 10
	// maxShort bounds the replies that are neither a script's answer nor a table: a role, an event
	// of a sentinel, and one string in a table. Each takes some hundred bytes.
	maxShort = 64 << 10
	// maxTable is the largest CLUSTER SLOTS: 16384 ranges, each with a master and two replicas, at
	// about 130 bytes a node.
	maxTable = 8 << 20
	// maxElements is the largest CLUSTER SLOTS: 27 elements a range (two slots, and three nodes of
	// eight). The client allocates 40 bytes for each element before it reads them: 20 MiB.
	maxElements = 1 << 19
	// maxDepth: CLUSTER SLOTS nests five deep, HELLO six with arguments of modules.
	maxDepth = 8
)

// boundsOf gives the bounds of the replies of a kind.
func (c *Checker) boundsOf(k kind) bounds {
	switch k {
	case table:
		return bounds{bytes: maxTable, text: maxShort, elements: maxElements, depth: maxDepth}
	case role: // A master names its replicas.
		return bounds{bytes: maxShort, text: maxLine, elements: maxShort / 4, depth: 3}
	case pair:
		return bounds{bytes: maxLine, text: maxLine, elements: 2, depth: 1}
	case scalar:
		return bounds{bytes: max(c.most, maxLine) + frame, text: c.most}
	default:
		return bounds{bytes: maxLine, text: maxLine}
	}
}

// pushed gives the bounds of push messages.
func pushed() bounds { return bounds{bytes: maxShort, text: maxShort, elements: 8, depth: 1} }

// frame is the largest framing of one string: its type, its length and two line ends.
const frame = 32
