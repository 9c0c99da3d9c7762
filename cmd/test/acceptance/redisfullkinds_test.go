package acceptance

import (
	"fmt"
	"strings"
)

// fullClient is a kind of Redis clients that fill what the server keeps for a connection. A client sends first, then again
// until it cannot, and reads nothing.
type fullClient struct {
	name, first, again string
	byteByByte         bool // first is sent in pieces of one byte
	quick              bool // make test has it
	few                bool // the answers have few bytes
}

// sips is how often a client reads some answers. A client that never sends a complete command gets none, and one whose answers
// are much shorter than its commands gets few.
func (k *fullClient) sips() int {
	if k.again == "" || k.few {
		return 0
	}
	return 1
}

// redisCommand writes a command as an array.
func redisCommand(words ...string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "*%d\r\n", len(words))
	for _, word := range words {
		fmt.Fprintf(&b, "$%d\r\n%s\r\n", len(word), word)
	}
	return b.String()
}

// fullClients lists what clients do to fill their connections. The last kind does all in turn.
func fullClients() []fullClient {
	key, moved := strings.Repeat("k", 1<<10), redisCommand("HG.DECIDE", "path=/moved/"+strings.Repeat("%", 16_000))
	kinds := []fullClient{
		{name: "long answers", again: redisCommand("ECHO", strings.Repeat("x", 60_000))},
		{name: "short commands with long answers", quick: true, again: strings.Repeat("INFO\r\n", 10_000)},
		{name: "the longest answers about commands", again: redisCommand(list("COMMAND", "INFO", 126)...)},
		{name: "sent limits with the longest keys", few: true, again: strings.Repeat(redisCommand("CL.THROTTLE", key, "9", "1", "60"), 60)},
		{name: "sent limits with the shortest keys", quick: true, again: strings.Repeat("THROTTLE k 9 1 60\r\n", 1000)},
		{name: "rules with the most pairs", again: strings.Repeat(mostPairs(), 9)},
		{name: "rules with the longest values in quotes", again: strings.Repeat(quotedPairs(1950, 1), 32)},
		{name: "rules with the most pairs in quotes", again: strings.Repeat(quotedPairs(40, 127), 9)},
		{name: "rules that redirect", quick: true, again: strings.Repeat(moved, 4)},
		{name: "faults in rules", again: strings.Repeat(redisCommand("HG.DECIDE", strings.Repeat("\x01", 64)+"=b"), 200)},
	}
	all := fullClient{name: "all of these in turn with RESP3", quick: true, first: "HELLO 3\r\n"}
	for _, kind := range kinds {
		all.again += kind.again
	}
	return append(kinds, all,
		fullClient{
			name: "half of a large command", quick: true,
			first: fmt.Sprintf("*5\r\n$11\r\nCL.THROTTLE\r\n$1024\r\n%s\r\n$64000\r\n%s", key, strings.Repeat("x", 60_000)),
		},
		fullClient{name: "half of a command in quotes", first: "HG.DECIDE " + strings.Repeat(`"header:a=b" `, 4000)},
		fullClient{
			name: "many elements byte by byte", byteByByte: true,
			first: "*128\r\n$9\r\nHG.DECIDE\r\n" + strings.Repeat("$1\r\nx\r\n", 100),
		},
	)
}

// list lists two words, and then a command n times.
func list(first, second string, n int) []string {
	all := []string{first, second}
	for range n {
		all = append(all, "cl.throttle")
	}
	return all
}

// mostPairs is a command with the most pairs.
func mostPairs() string {
	words := []string{"HG.DECIDE"}
	for n := range 64 {
		words = append(words, fmt.Sprintf("header:%d=b", n))
		if n < 63 {
			words = append(words, fmt.Sprintf("cookie:%d=b", n))
		}
	}
	return redisCommand(words...)
}

// quotedPairs is a command in one line, whose values are in quotes.
func quotedPairs(bytes, pairs int) string {
	var b strings.Builder
	b.WriteString("HG.DECIDE")
	for n := range pairs {
		part := "header"
		if n >= 64 {
			part = "cookie"
		}
		name := "a"
		if n > 0 {
			name = fmt.Sprint(n)
		}
		fmt.Fprintf(&b, ` "%s:%s=%s"`, part, name, strings.Repeat("v", bytes))
	}
	b.WriteString("\r\n")
	return b.String()
}
