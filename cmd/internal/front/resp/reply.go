package resp

import (
	"bytes"
	"cmp"
	"strconv"
	"strings"
	"time"

	"github.com/headgate/headgate/cmd/internal/access"
	"github.com/headgate/headgate/cmd/internal/remote"
)

// reply appends the answer to a command. It reports whether the command succeeded.
func (c *conn) reply(w *work, command *command) bool {
	out, args := &w.out, w.args[command.from:command.to]
	switch {
	case command.fault != nil:
		c.access.refuse(out, command.fault)
		return false
	case command.description == nil:
		out.failure("ERR", unknownText(args[0]))
		return false
	}
	switch k := command.description.kind; k {
	case kindCell, kindCrab:
		d, err := w.sent.Decision(command.place)
		out.throttled(k, d, err)
		return err == nil
	case kindDecide:
		var a remote.Answer
		err := w.decide.Answer(command.place, &a)
		if _, refused := access.ReasonOf(err); refused {
			c.access.refuse(out, err)
			return false
		}
		// A location has up to three bytes for each byte of a path.
		if len(out.b)+len(a.Location)+answerSize/2 > outputSize && !c.flush(w) {
			return false
		}
		out.decided(&a, err)
		return err == nil
	case kindEcho:
		if len(out.b)+len(args[1]) > outputSize && !c.flush(w) {
			return false
		}
		out.bytes(args[1])
	default:
		return c.manage(w, k, args)
	}
	return true
}

// manage answers the commands about the connection and the server.
func (c *conn) manage(w *work, k kind, args [][]byte) bool {
	out := &w.out
	switch k {
	case kindPing:
		return c.ping(w, args)
	case kindAuth:
		return c.authenticate(out, args[1:])
	case kindHello:
		return c.hello(out, args[1:])
	case kindSelect:
		if len(args[1]) != 1 || args[1][0] != '0' {
			return out.refuse("DB index is out of range: use 0")
		}
		out.status("OK")
	case kindClient:
		return c.client(out, args[1:])
	case kindCommand:
		return out.describe(args[1:])
	case kindInfo:
		out.text(c.server.info())
	case kindReset:
		c.three, c.name, out.three = false, "", false
		c.forget()
		out.status("RESET")
	default:
		out.status("OK") // QUIT
	}
	return true
}

// refuse appends an error, and reports false.
func (w *writer) refuse(text string) bool {
	w.failure("ERR", text)
	return false
}

func (c *conn) ping(w *work, args [][]byte) bool {
	if len(args) == 1 {
		w.out.status("PONG")
		return true
	}
	if len(w.out.b)+len(args[1]) > outputSize && !c.flush(w) {
		return false
	}
	w.out.bytes(args[1])
	return true
}

// greeting is what HELLO asks for.
type greeting struct {
	three bool
	name  string
	auth  [][]byte // the name of a caller and its token
}

// readHello reads the arguments of HELLO [2|3 [AUTH caller token] [SETNAME name]]. problem is "" or the error.
func (c *conn) readHello(args [][]byte) (g greeting, problem string) {
	g = greeting{three: c.three, name: c.name}
	if len(args) == 0 {
		return g, ""
	}
	version, ok := parseInt(args[0])
	if !ok || version < 2 || version > 3 {
		return g, noProtocol
	}
	g.three = version == 3
	for args = args[1:]; len(args) > 0; {
		switch {
		case is(args[0], "auth") && len(args) > 2: //nolint:mnd // AUTH caller token.
			g.auth, args = args[1:3], args[3:]
		case !is(args[0], "setname") || len(args) < 2:
			return g, "syntax error in HELLO: write HELLO 3 AUTH caller token SETNAME name"
		case !validName(args[1]):
			return g, badName
		default:
			g.name, args = string(args[1]), args[2:]
		}
	}
	return g, ""
}

const noProtocol = "unsupported protocol version: use 2 or 3"

// hello answers HELLO.
func (c *conn) hello(out *writer, args [][]byte) bool {
	g, problem := c.readHello(args)
	switch {
	case problem == noProtocol:
		out.failure("NOPROTO", problem)
		return false
	case problem != "":
		return out.refuse(problem)
	case g.auth != nil:
		if err := c.admit(g.auth); err != nil {
			c.access.refuse(out, err)
			return false
		}
	case c.access.locked():
		c.access.refuse(out, cmp.Or(c.access.fault, access.ErrNoCredentials))
		return false
	}
	three := g.three
	c.three, c.name, out.three = three, g.name, three
	out.fields(7) //nolint:mnd // The fields below.
	out.named("server", "headgate")
	out.named("version", c.server.version)
	out.text("proto")
	if three {
		out.integer(3)
	} else {
		out.integer(2)
	}
	out.text("id")
	out.integer(c.id)
	out.named("mode", "standalone")
	out.named("role", "master")
	out.text("modules")
	out.array(0)
	return true
}

const (
	maxName = 128
	badName = "the name is invalid: send up to 128 printable characters without spaces"
)

// validName reports whether a client may have a name.
func validName(name []byte) bool {
	return len(name) <= maxName && !bytes.ContainsFunc(name, func(r rune) bool { return r <= ' ' || r > '~' })
}

// client answers CLIENT.
func (c *conn) client(out *writer, args [][]byte) bool {
	switch n := len(args); {
	case is(args[0], "id") && n == 1:
		out.integer(c.id)
	case is(args[0], "getname") && n == 1 && c.name == "":
		out.null()
	case is(args[0], "getname") && n == 1:
		out.text(c.name)
	case is(args[0], "setname") && n == 2, is(args[0], "setinfo") && n == 3:
		if !validName(args[n-1]) {
			return out.refuse(badName)
		}
		if n == 2 { //nolint:mnd // CLIENT SETNAME.
			c.name = string(args[1])
		}
		out.status("OK")
	default:
		return out.refuse("unknown subcommand or wrong number of arguments: use CLIENT ID, GETNAME, SETNAME name or SETINFO name value")
	}
	return true
}

// info describes the server.
func (s *Server) info() string {
	stats, b := s.Stats(), new(strings.Builder)
	b.WriteString("# Server\r\nserver_name:headgate\r\nheadgate_version:" + s.version + "\r\nredis_mode:standalone\r\nuptime_in_seconds:")
	b.WriteString(strconv.FormatInt(int64(time.Since(s.began)/time.Second), 10))
	b.WriteString("\r\n\r\n# Clients\r\nconnected_clients:" + strconv.Itoa(stats.Open))
	b.WriteString("\r\n\r\n# Stats\r\ntotal_connections_received:" + strconv.FormatUint(stats.Accepted, 10))
	b.WriteString("\r\ntotal_commands_processed:" + strconv.FormatUint(stats.Commands, 10))
	b.WriteString("\r\ntotal_error_replies:" + strconv.FormatUint(stats.Faults, 10) + "\r\n")
	return b.String()
}

// describe answers COMMAND, COMMAND COUNT, COMMAND DOCS and COMMAND INFO.
func (w *writer) describe(args [][]byte) bool {
	switch {
	case len(args) == 0:
		w.array(len(descriptions))
		for i := range descriptions {
			w.entry(&descriptions[i])
		}
	case is(args[0], "count") && len(args) == 1:
		w.integer(int64(len(descriptions)))
	case is(args[0], "docs"):
		w.docs(args[1:])
	case is(args[0], "info"):
		w.array(len(args) - 1)
		for _, name := range args[1:] {
			if d := find(name); d != nil {
				w.entry(d)
			} else {
				w.null()
			}
		}
	default:
		return w.refuse("unknown subcommand: use COMMAND COUNT, COMMAND DOCS or COMMAND INFO")
	}
	return true
}

// entry describes a command to programs: its name, its arguments, its flags and the places of its keys.
func (w *writer) entry(d *description) {
	w.array(10) //nolint:mnd // The elements below.
	w.text(d.name)
	if d.least == d.most {
		w.integer(int64(d.least))
	} else {
		w.integer(-int64(d.least))
	}
	w.set(1)
	w.status("fast")
	place := flag(d.key)
	for range 3 { // The first key, the last key, and the step.
		w.integer(place)
	}
	for range 4 { // Categories, tips, key specifications and subcommands.
		w.array(0)
	}
}

// docs describes commands to people: all, or those with the names.
func (w *writer) docs(names [][]byte) {
	var all []*description
	for i := range descriptions {
		if len(names) == 0 || contains(names, descriptions[i].name) {
			all = append(all, &descriptions[i])
		}
	}
	w.fields(len(all))
	for _, d := range all {
		w.text(d.name)
		w.fields(3) //nolint:mnd // The fields below.
		w.named("summary", d.summary)
		w.named("group", "generic")
		w.named("usage", strings.TrimSuffix(strings.ToUpper(d.name)+" "+d.usage, " "))
	}
}

func contains(names [][]byte, name string) bool {
	for _, n := range names {
		if is(n, name) {
			return true
		}
	}
	return false
}
