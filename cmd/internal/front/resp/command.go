package resp

import "strings"

// kind is a command.
type kind uint8

const (
	kindUnknown kind = iota
	kindCell
	kindCrab
	kindDecide
	kindPing
	kindEcho
	kindAuth
	kindHello
	kindSelect
	kindClient
	kindCommand
	kindInfo
	kindReset
	kindQuit
	kindForbidden // of HTTP
)

// description is a command, as COMMAND shows it.
type description struct {
	kind        kind
	name        string
	least, most int // arguments, with the name
	key         bool
	usage       string
	summary     string
}

const sentUsage = "key max_burst count period [quantity]"

// descriptions lists all commands. Those of limits come first, because they are the most frequent.
//
//nolint:gochecknoglobals // It is a table that nothing changes.
var descriptions = [...]description{
	{kindCell, "cl.throttle", 5, 6, true, sentUsage, "Takes units of a limit that the client sends, as redis-cell documents it."},
	{kindCrab, "throttle", 5, 6, true, sentUsage, "Takes units of a limit that the client sends, as throttlecrab documents it."},
	{kindDecide, "hg.decide", 2, maxArguments, false, "NAME=VALUE ... [COST n]", "Decides a request by the rules."},
	{kindPing, "ping", 1, 2, false, "[message]", "Answers PONG, or the message."},
	{kindEcho, "echo", 2, 2, false, "message", "Answers the message."},
	{kindAuth, "auth", 2, 3, false, "[caller] token", "Authenticates the connection with the token of a caller."},
	{kindHello, "hello", 1, maxArguments, false, "[2|3 [AUTH caller token] [SETNAME name]]", "Selects the version of the protocol."},
	{kindSelect, "select", 2, 2, false, "0", "Accepts database 0."},
	{kindClient, "client", 2, 4, false, "ID | GETNAME | SETNAME name | SETINFO LIB-NAME|LIB-VER value", "Describes the connection."},
	{kindCommand, "command", 1, maxArguments, false, "[COUNT | DOCS [name ...] | INFO [name ...]]", "Describes the commands."},
	{kindInfo, "info", 1, maxArguments, false, "[section ...]", "Describes the server."},
	{kindReset, "reset", 1, 1, false, "", "Forgets the name and the caller of the connection and selects RESP2."},
	{kindQuit, "quit", 1, maxArguments, false, "", "Closes the connection."},
}

// find gives the description of a command; nil if it is unknown.
func find(name []byte) *description {
	for i := range descriptions {
		if d := &descriptions[i]; is(name, d.name) {
			return d
		}
	}
	return nil
}

// is compares a word of a client with one in lower case.
func is(word []byte, lower string) bool {
	if len(word) != len(lower) {
		return false
	}
	for i, c := range word {
		if c >= 'A' && c <= 'Z' {
			c += 'a' - 'A'
		}
		if c != lower[i] {
			return false
		}
	}
	return true
}

// forbidden reports whether a word begins a request of HTTP: a web page may have made a browser send it.
func forbidden(word []byte) bool { return is(word, "post") || is(word, "host:") }

// unknownText is the error of unknown commands.
func unknownText(name []byte) string {
	const most = 64
	var text strings.Builder
	text.WriteString("unknown command '")
	text.Write(name[:min(len(name), most)])
	text.WriteString("': use one of ")
	for i := range descriptions {
		if i > 0 {
			text.WriteString(", ")
		}
		text.WriteString(strings.ToUpper(descriptions[i].name))
	}
	return text.String()
}
