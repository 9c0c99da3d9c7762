package config

import (
	"fmt"
	"slices"
	"strings"

	"github.com/headgate/headgate/internal/config/field"
	"github.com/headgate/headgate/rule"
)

// maxLogParts bounds the parts that a line of the access log has, in log.identity and log.identity_plain together. More of them would make
// lines longer than collectors take.
const maxLogParts = 8

const (
	logIdentityName  = "identity"
	identityPlain    = "identity_plain"
	logIdentityPath  = "log." + logIdentityName
	logPlainPath     = "log." + identityPlain
	logIdentityUsage = "[header:X-Client-Id]"
)

// identityParts reads the parts of keys that lines of the access log have.
func (s *section) identityParts(l *Log) {
	l.Identity = s.logParts(s.declare(logIdentityName, field.Taken, "Parts of keys whose values each line of a json access log has, in "+
		"the form of log.keys, so that headgate replay can apply rules to them. At most 8 parts, with those of identity_plain."),
		logIdentityUsage)
	l.IdentityPlain = s.logParts(s.declare(identityPlain, field.Taken, "Parts of keys whose values each line of a json access log has in "+
		"clear. Cookies and claims are not allowed."), "[header:X-Plan]")
	for _, name := range [...]string{logIdentityName, identityPlain} {
		v, ok := s.given(name)
		switch {
		case !ok || s.blamedAny("access", name):
		case l.Access == AccessOff:
			s.fault(v, "has no effect without an access log", "set log.access to json")
		case l.Access != AccessJSON:
			s.fault(v, "has no effect with access "+string(l.Access)+", which has no such fields", "set log.access to json")
		case name == logIdentityName && l.Keys == KeysOff && !s.blamedAny("keys"):
			s.fault(v, "has no effect with keys off", "remove it, or write keys: by_reader")
		}
	}
	s.checkLogParts(l)
}

// logParts reads a list of parts.
func (s *section) logParts(name, example string) []rule.Part {
	s.outline.field(name).entries().written("", keyPattern)
	entries, _ := s.scalars(name, example, maxLogParts)
	var parts []rule.Part
	for _, v := range entries {
		part, err := rule.ParsePart(v.text())
		switch {
		case err != nil:
			s.parseFault(v, err)
		case slices.Contains([]string{"all", "path", "method", "host"}, part.Word()):
			s.fault(v, part.String()+" is in each line already, or has no value", "remove it")
		case part.Word() == "descriptor":
			s.fault(v, "requests of the proxy have no descriptors", "remove it")
		case name == identityPlain && slices.Contains([]string{"cookie", "jwt", "query"}, part.Word()):
			s.fault(v, part.String()+" may be a secret of the client, and this list is written in clear",
				"move it to "+logIdentityPath+", which writes hashes")
		case name == identityPlain && isCredential(part.Name()):
			s.fault(v, part.String()+" has the credentials of the client, and this list is written in clear",
				"move it to "+logIdentityPath+", which writes hashes")
		case slices.Contains(parts, part):
			s.fault(v, part.String()+" appears twice", "remove one of them")
		default:
			parts = append(parts, part)
		}
	}
	return parts
}

// isCredential reports whether a header has credentials or cookies.
func isCredential(header string) bool {
	return slices.Contains([]string{"Authorization", "Proxy-Authorization", "Cookie"}, header)
}

// checkLogParts finds parts in both lists, and too many of them.
func (s *section) checkLogParts(l *Log) {
	v, ok := s.given(identityPlain)
	if !ok || s.blamedAny(logIdentityName, identityPlain) {
		return
	}
	for _, part := range l.IdentityPlain {
		if slices.Contains(l.Identity, part) {
			s.fault(v, part.String()+" is in "+logIdentityPath+" too", "remove one of them")
			return
		}
	}
	if n := len(l.Identity) + len(l.IdentityPlain); n > maxLogParts {
		s.fault(v, fmt.Sprintf("has, with %s, %d parts", logIdentityPath, n), fmt.Sprintf("use at most %d in both", maxLogParts))
	}
}

// checkLogIdentity finds parts for which the identity has no facts.
func (r *reader) checkLogIdentity(c *Config) {
	id := r.identityFacts(c)
	for _, list := range [...]struct {
		path  string
		parts []rule.Part
	}{{logIdentityPath, c.Log.Identity}, {logPlainPath, c.Log.IdentityPlain}} {
		if r.blamedAt(list.path) {
			continue
		}
		for i, part := range list.parts {
			r.noteAll(id.Part(part, fmt.Sprintf("%s[%d]", list.path, i)))
		}
	}
}

// logged are the parts whose facts the access log needs.
func (l *Log) logged() []rule.Part {
	if l.Access != AccessJSON {
		return nil
	}
	return slices.Concat(l.Identity, l.IdentityPlain)
}

// writeLogIdentity says what lines of the access log have of the identity of a client.
func (c *Config) writeLogIdentity(b *strings.Builder) {
	l := &c.Log
	if len(l.logged()) == 0 {
		return
	}
	b.WriteString("access log with ")
	if len(l.Identity) > 0 {
		form := "hashes of "
		if l.Keys == KeysPlain {
			form = "the values of "
		}
		b.WriteString(form + partTexts(l.Identity))
	}
	if len(l.IdentityPlain) > 0 {
		if len(l.Identity) > 0 {
			b.WriteString(", and ")
		}
		b.WriteString("the values of " + partTexts(l.IdentityPlain))
	}
	b.WriteByte('\n')
}

func partTexts(parts []rule.Part) string {
	texts := make([]string, len(parts))
	for i, p := range parts {
		texts[i] = p.String()
	}
	return strings.Join(texts, ", ")
}

// LogWarnings tells that the hashes of log.identity change with each start. Such a log is valid, and cannot be replayed.
func (c *Config) LogWarnings() []string {
	l := &c.Log
	if len(l.Identity) == 0 || l.Access != AccessJSON || l.KeysSecretFile != "" || l.Keys == KeysPlain {
		return nil
	}
	return []string{"log.identity: each start makes a new secret for the hashes, so headgate replay cannot apply values of the " +
		"configuration to this log: name a file with a secret with log.keys_secret_file"}
}
