package config

import (
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/headgate/headgate/internal/config/field"
	"github.com/headgate/headgate/rule"
)

// Bounds of callers.
const (
	maxCallers      = 10_000
	maxCallerTokens = 16
	maxCallerNames  = 1000 // domains, and rules
	maxCallerName   = 64
	maxCertificate  = 2048
)

const (
	tokenPrefix   = "sha256:"
	callerExample = `{name: checkout, tokens: ["sha256:..."], scopes: [decide]}`
	untilFix      = "write a date like 2027-01-31, which includes that day in UTC, or a time like 2027-01-31T12:00:00Z"
)

// Caller is a client of headgate server that proves who it is.
type Caller struct {
	Name string
	// Tokens are the SHA-256 of its tokens. There are several while tokens rotate.
	Tokens [][32]byte
	// Certificate is the name of its certificate: the first URI, else the first DNS name, else the common name.
	// "" means none.
	Certificate string
	Scopes      Scope
	// Domains and Rules are those that its requests may match. None means all.
	Domains, Rules []string
	// Until is when the caller ends. The zero Time means that it does not.
	Until time.Time
}

// callers reads a list of callers.
func (s *section) callers(known []string) []Caller {
	s.declare("callers", field.Taken, "Clients that prove who they are: their tokens or certificates, and what they may do.")
	entries, _ := s.list("callers", "["+callerExample+"]", 0, maxCallers)
	var all []Caller
	seen := callerNames{names: map[string]string{}, tokens: map[[32]byte]string{}, certificates: map[string]string{}}
	for _, v := range entries {
		if v.node == nil || s.full {
			continue
		}
		one := s.section(v, "write it like "+callerExample)
		if one.self.node == nil {
			continue
		}
		one.outline = s.outline.field("callers").entries()
		c := one.caller(known)
		one.end()
		if problem, fix := seen.add(&c); problem != "" {
			s.fault(v, problem, fix)
		}
		all = append(all, c)
	}
	return all
}

// callerNames finds names, tokens and certificates of two callers.
type callerNames struct {
	names, certificates map[string]string
	tokens              map[[32]byte]string
}

// add adds a caller. problem is "" if it differs from those before.
func (n *callerNames) add(c *Caller) (problem, fix string) {
	if _, twice := n.names[c.Name]; twice && c.Name != "" {
		return "caller " + quote(c.Name) + " appears twice", "use another name"
	}
	n.names[c.Name] = c.Name
	for _, t := range c.Tokens {
		if other, twice := n.tokens[t]; twice {
			return "has a token of caller " + quote(other) + " too", "make another one with headgate token"
		}
		n.tokens[t] = c.Name
	}
	if other, twice := n.certificates[c.Certificate]; twice && c.Certificate != "" {
		return "has the certificate of caller " + quote(other) + " too", "use another name in one certificate"
	}
	n.certificates[c.Certificate] = c.Name
	return "", ""
}

// caller reads one caller. known are the names of rules.
func (s *section) caller(known []string) (c Caller) {
	s.declare("name", field.Taken, "Name of the caller, in logs and for AUTH of the Redis protocol.")
	s.required("name", "name the caller, like name: checkout")
	s.outline.field("name").written("", callerPattern)
	if v, ok := s.textOf("name", &c.Name); ok && !validCaller(c.Name) {
		s.fault(v, quote(c.Name)+" is not a name", fmt.Sprintf("use 1 to %d letters, digits and the signs - _ and .", maxCallerName))
	}
	s.tokens(&c)
	s.declare("certificate", field.Taken, "Name of the caller's client certificate: its first URI, else its first DNS name, else its "+
		"common name.")
	s.outline.field("certificate").text("", "", 1, maxCertificate)
	if v, ok := s.textOf("certificate", &c.Certificate); ok && (c.Certificate == "" || len(c.Certificate) > maxCertificate) {
		s.fault(v, "is empty or too long", fmt.Sprintf("write 1 to %d bytes, like spiffe://example.com/checkout", maxCertificate))
	}
	if len(c.Tokens) == 0 && c.Certificate == "" && !s.blamedAny("tokens", "certificate") {
		s.fault(s.self, "has no token and no certificate", "make a token with headgate token NAME --scope decide, or name a certificate")
	}
	s.scopes(&c)
	c.Domains = s.texts(s.declare("domains", field.Taken, "Domains that its requests may name. Default: all."), "[shop]", maxCallerNames)
	c.Rules = s.texts(s.declare("rules", field.Taken, "Rules that its requests may match. Default: all."), "[search]", maxCallerNames)
	s.knownRules(c.Rules, known)
	s.until(&c)
	return c
}

// validCaller reports whether a caller may have a name.
func validCaller(name string) bool {
	return name != "" && len(name) <= maxCallerName && !strings.ContainsFunc(name, func(r rune) bool {
		return r > unicode.MaxASCII || !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("-_.", r)
	})
}

// ValidCaller reports whether a caller may have a name: 1 to 64 letters, digits and the signs - _ and .
func ValidCaller(name string) bool { return validCaller(name) }

// tokens reads the digests of tokens.
func (s *section) tokens(c *Caller) {
	s.declare("tokens", field.Taken, "SHA-256 of each token, as headgate token prints it. Several while tokens rotate.")
	s.outline.field("tokens").entries().written("", digestPattern)
	entries, _ := s.scalars("tokens", `["sha256:..."]`, maxCallerTokens)
	for _, v := range entries {
		digits, named := strings.CutPrefix(v.text(), tokenPrefix)
		b, err := hex.DecodeString(digits)
		if !named || err != nil || len(b) != len([32]byte{}) {
			s.hide(v) // It may be the token itself.
			s.fault(v, "is no digest of a token", "make a token with headgate token NAME, and write the line that it prints: sha256: and "+
				"64 hexadecimal digits")
			continue
		}
		c.Tokens = append(c.Tokens, [32]byte(b))
	}
}

// scopes reads what the caller may do.
func (s *section) scopes(c *Caller) {
	s.declare("scopes", field.Taken, "What the caller may do: decide, send_limits (limits in requests), read (state), administer, and "+
		"lease (claims of capacity).")
	s.required("scopes", "write what the caller may do, like scopes: [decide]")
	words, _ := built(scopeChoices(), 0)
	s.outline.field("scopes").entries().words("", words)
	entries, _ := s.scalars("scopes", "[decide]", len(words))
	for _, v := range entries {
		var one Scope
		chosen(s.reader, v, &one, scopeChoices())
		if c.Scopes&one != 0 {
			s.fault(v, quote(v.text())+" appears twice", "remove one of them")
		}
		c.Scopes |= one
	}
}

// knownRules finds names that no rule has.
func (s *section) knownRules(names, known []string) {
	for i, name := range names {
		if slices.Contains(known, name) || s.deferred {
			continue
		}
		fix := "write the name of a rule, or remove it"
		if near := rule.Nearest(name, known); near != "" {
			fix = "did you mean " + near + "?"
		}
		s.fault(s.find(s.pathOf(fmt.Sprintf("rules[%d]", i))), "no rule is called "+quote(name), fix)
	}
}

// until reads when the caller ends.
func (s *section) until(c *Caller) {
	s.declare("until", field.Taken, "When the caller ends: a date, which includes that day in UTC, or a time. Default: never.")
	s.outline.field("until").written("", untilPattern)
	text := ""
	v, ok := s.textOf("until", &text)
	if !ok {
		return
	}
	var err error
	if c.Until, err = ParseUntil(text); err != nil {
		s.fault(v, quote(text)+" is no date", untilFix)
	}
}

// ParseUntil reads the end of a caller: a date, which includes that day in UTC, or a time of RFC 3339.
func ParseUntil(text string) (time.Time, error) {
	if day, err := time.Parse(time.DateOnly, text); err == nil {
		return day.AddDate(0, 0, 1), nil
	}
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return time.Time{}, fmt.Errorf("config: %s is no date: %s", quote(text), untilFix)
	}
	return at, nil
}

// AllCallers gives the callers of server.callers and those of the file server.callers_file, which it reads. The
// error is of type Faults, or a *FileError if the file cannot be read.
func (c *Config) AllCallers() ([]Caller, error) {
	if c.Server == nil {
		return nil, nil
	}
	if c.Server.CallersFile == "" {
		return c.Server.Callers, nil
	}
	text, err := readBounded(c.Server.CallersFile)
	if err != nil {
		return nil, &FileError{"server.callers_file", adviseRead(err)}
	}
	read, err := parseCallers(c.Server.CallersFile, text, c.ruleNames())
	if err != nil {
		return nil, err
	}
	seen := callerNames{names: map[string]string{}, tokens: map[[32]byte]string{}, certificates: map[string]string{}}
	all := slices.Concat(c.Server.Callers, read)
	for i := range all {
		if problem, fix := seen.add(&all[i]); problem != "" {
			return nil, Faults{{File: c.Server.CallersFile, Path: "callers", Problem: problem + ", in server.callers", Fix: fix}}
		}
	}
	if len(all) > maxCallers {
		return nil, &FileError{"server.callers_file", errors.New("there are more than 10,000 callers: use fewer")}
	}
	return all, nil
}

// parseCallers reads a file of callers.
func parseCallers(name string, text []byte, rules []string) ([]Caller, error) {
	src, bad := newSource(name, text)
	if bad != nil {
		return nil, Faults{*bad}
	}
	root, bad := src.tree()
	if bad != nil {
		if bad.Problem == problemEmpty {
			bad.Fix = "write callers: [" + callerExample + "]"
		}
		return nil, Faults{*bad}
	}
	r := &reader{source: src, environment: func(string) (string, bool) { return "", false }, root: root}
	file := r.section(value{node: root}, "callers: ["+callerExample+"]")
	file.required("callers", "write callers: ["+callerExample+"]")
	all := file.callers(rules)
	file.end()
	return all, r.result()
}

func (c *Config) ruleNames() []string {
	names := make([]string, len(c.Rules))
	for i := range c.Rules {
		names[i] = c.Rules[i].Name
	}
	return names
}

// access reads who may use the server, after its listeners.
func (s *section) access(c *Config, settings *Server) {
	settings.Callers = s.callers(c.ruleNames())
	s.file(s.declare("callers_file", field.Taken, "File with further callers, as a list under the name callers. It is read again when it "+
		"changes."),
		&settings.CallersFile)
	s.serverLimits(&settings.Limits)
}

// checkAuth finds listeners whose clients must prove who they are, and no caller can. The reader has the values of
// their fields.
func (r *reader) checkAuth(c *Config) {
	known := c.Server != nil && (len(c.Server.Callers) > 0 || c.Server.CallersFile != "")
	if known || r.blamedAt("server") || r.blamedAt("server.callers") {
		return
	}
	for _, v := range r.authenticated {
		r.fault(v, "needs callers: without them, every client is refused", "add server.callers, with the lines that headgate token prints")
	}
}
