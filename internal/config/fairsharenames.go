package config

import (
	"fmt"
	"net/netip"
	"strings"
	"unicode"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/guard/fairshare"
	"github.com/headgate/headgate/internal/config/check"
	"github.com/headgate/headgate/internal/config/field"
	"github.com/headgate/headgate/internal/errortype"
	"github.com/headgate/headgate/rule"
)

const weightsExample = "{home-loan: 2}"

// weights reads the weights of named clients.
func (s *section) weights(f *guard.FairShare) {
	w := s.sub(s.declare("weights", field.Taken, "Weights of named clients; other clients have weight 1. Named clients are known from the "+
		"start."), weightsExample)
	w.settable = false // Variables cannot set the weight of a client.
	w.outline.each(fairshare.MostClients).number(0, 1, fairshare.MostWeight)
	if w.self.node == nil || len(w.names) == 0 {
		return
	}
	if n := len(w.names); n > f.MaxClients {
		s.fault(s.keyOf("weights"), fmt.Sprintf("has %d clients, but max_clients is %d", n, f.MaxClients),
			fmt.Sprintf("raise max_clients to %d or more, or name fewer", n))
		return
	}
	plain := w.checkClientNames(f.Client)
	f.Weights = make(map[string]int64, len(w.names))
	for _, name := range w.names {
		v, ok := w.valueOf(name)
		weight := int64(0)
		switch {
		case s.full:
			return
		case !ok:
		case v.node.Kind != yaml.ScalarNode:
			w.fault(v, "must be a whole number, not "+kindOf(v.node), "write the client's weight, like 2")
		case w.wholeNumber(v, &weight, 1, fairshare.MostWeight):
			f.Weights[clientName(f.Client, plain[name])] = weight
		}
	}
}

// checkClientNames finds names that no client can have, and returns the texts that the other names stand for. A zero part is
// already at fault: then it checks only the rules that hold for all names.
func (s *section) checkClientNames(part rule.Part) map[string]string {
	names, values, plain := make([]string, 0, len(s.names)), make([]string, 0, len(s.names)), make(map[string]string, len(s.names))
	for _, name := range s.names {
		if problem, fix := clientNameFault(name); problem != "" {
			s.fault(s.nameOf(name), problem, fix)
		} else if part != (rule.Part{}) {
			if text, ok := s.plainName([]rule.Part{part}, name); ok {
				names, values, plain[name] = append(names, name), append(values, text), text
			}
		}
	}
	_, err := rule.NewOverrides(part, values)
	if len(values) == 0 {
		return plain
	}
	for _, err := range check.Unjoin(err) {
		if bad, found := errortype.As[*rule.OverrideError](err); found {
			s.fault(s.nameOf(names[bad.Index]), bad.Problem, bad.Fix)
		}
	}
	return plain
}

// nameOf returns the name of a field as a value. Its path is that of the section, because the name
// may be any text.
func (s *section) nameOf(name string) value {
	return value{path: s.self.path, node: s.fields[name].key}
}

// clientNameFault says why a text cannot be the name of a client. The problem is "" if it can.
func clientNameFault(text string) (problem, fix string) {
	switch {
	case text == "":
		return "a name is empty", "write the name that the client sends"
	case text == fairshare.Others:
		return quote(text) + " is reserved for all clients without a share of their own", "remove it"
	case len(text) > maxOverrideValue:
		return fmt.Sprintf("a name has %d bytes", len(text)), fmt.Sprintf("use at most %d", maxOverrideValue)
	case namesDigest(text):
		return quote(text) + " is the digest of another name", "write the name itself, as the client sends it"
	default:
		return "", ""
	}
}

// namesDigest reports whether a text looks like the digest that rule.ClientName writes for a
// long or unprintable name. Tables of clients show digests, but no client sends one.
func namesDigest(text string) bool {
	shown := utf8.ValidString(text) && !strings.ContainsFunc(text, func(c rune) bool { return !unicode.IsPrint(c) })
	return shown && len(text) <= rule.MaxClientName && rule.ClientName(text) != text
}

// clientName returns the name under which a guard counts a client. It normalizes addresses and
// hosts, which have several spellings.
func clientName(part rule.Part, text string) string {
	if word := part.String(); word == "host" || word == "path" || word == "method" {
		text = strings.TrimPrefix(text, "=") // The mark of a literal.
	}
	if part.OfMatch() && part.Word() == "host" {
		return strings.ToLower(text)
	}
	if strings.HasPrefix(part.String(), "cookie:") {
		return rule.CookieForm(text)
	}
	if part.String() == "host" {
		if ip, err := netip.ParseAddr(strings.Trim(text, "[]")); err == nil {
			return ip.String()
		}
		return strings.ToLower(text)
	}
	address, _, _ := strings.Cut(text, "/")
	ip, err := netip.ParseAddr(address)
	if err != nil {
		return text
	}
	name, ok := part.AppendClient(nil, &headgate.Request{IP: ip, XFFIP: ip, UserIP: ip})
	if !ok {
		return text // The part is not an address.
	}
	return string(name)
}

// plainName returns the value that the name of a field stands for: see rule.Part.ParseValue. It reports false if the name looks
// like a pattern. The value belongs to the first part of a key.
func (s *section) plainName(key []rule.Part, name string) (string, bool) {
	if len(key) == 0 {
		return name, true // The key is at fault.
	}
	text, err := key[0].ParseValue(name)
	if err != nil {
		s.parseFault(s.nameOf(name), err)
	}
	return text, err == nil
}
