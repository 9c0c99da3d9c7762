package grpcpace

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/headgate/headgate/pace"
	"github.com/headgate/headgate/pace/heed"
)

// Config says which calls are paced, and how.
type Config struct {
	// Methods gives each method its pacer: by its full name ("/mail.v1.Mail/Send"), all of a
	// service ("/mail.v1.Mail/*"), or all others ("*"). Calls of a method whose pacer is nil are
	// not paced.
	Methods map[string]*pace.Pacer
	// Pacer chooses the pacer of a call in place of Methods, by the target of its
	// connection and its full method; nil is none. There should be few of them, that last.
	Pacer func(target, method string) *pace.Pacer
	// Strict refuses calls for which there is no pacer, with ErrNoPacer. Otherwise they are
	// made as they are.
	Strict bool

	// Cost gives the units of a call: 1 when it is nil. The message is that of a unary call
	// or, with PerMessage, the one that is sent; it is nil when a stream begins. A call of 0
	// units needs no permit; less is a fault.
	Cost func(method string, message any) int64
	// MaxWait is how long a call, or a message, waits for its permits. 0 is until its
	// deadline, and heed.DefaultMaxWait, a minute, if it has none; less does not wait at
	// all. A deadline that is nearer counts in any case.
	MaxWait time.Duration
	// PerMessage has each message that is sent on a stream take permits, and none
	// its begin.
	PerMessage bool
}

var (
	// ErrNoPacer says that Config has no pacer for the method of a call.
	ErrNoPacer = errors.New("grpcpace: no pacer for the method: give it one in Config.Methods, " +
		"or nil there if it need not be paced")
	errMethods = errors.New("grpcpace: Config wants one of Methods and Pacer")
	errCost    = errors.New("grpcpace: Config.Cost gave less than 0 units")
)

// methods finds whose limit a method has.
type methods struct {
	exact    map[string]*heed.Listener
	services map[string]*heed.Listener // by "/mail.v1.Mail/"
	others   *heed.Listener
	any      bool // there is an entry for others
}

func newMethods(config map[string]*pace.Pacer, listeners *heed.Listeners) (*methods, error) {
	m := &methods{exact: make(map[string]*heed.Listener), services: make(map[string]*heed.Listener)}
	for name, pacer := range config {
		l := listeners.Of(pacer)
		service, method := split(name)
		switch {
		case name == "*":
			m.others, m.any = l, true
		case !isService(service) || method == "":
			return nil, fmt.Errorf("grpcpace: Config.Methods has %q: write %q, %q or %q",
				name, "/mail.v1.Mail/Send", "/mail.v1.Mail/*", "*")
		case method == "*":
			m.services[service] = l
		case strings.Contains(name, "*"):
			return nil, fmt.Errorf("grpcpace: Config.Methods has %q: a star stands for a whole name, as in %q",
				name, "/mail.v1.Mail/*")
		default:
			m.exact[name] = l
		}
	}
	return m, nil
}

// find gives the listener of a method, which is nil where none is wanted, and whether
// there is an entry for it.
func (m *methods) find(name string) (l *heed.Listener, ok bool) {
	if l, ok = m.exact[name]; ok {
		return l, true
	}
	service, _ := split(name)
	if l, ok = m.services[service]; ok {
		return l, true
	}
	return m.others, m.any
}

// isService says whether a name is what stands before a method: "/mail.v1.Mail/".
func isService(name string) bool {
	return len(name) >= len("/s/") && name[0] == '/' && strings.Count(name, "/") == 2
}

// split cuts a full method behind its service.
func split(name string) (service, method string) {
	i := strings.LastIndexByte(name, '/') + 1
	return name[:i], name[i:]
}
