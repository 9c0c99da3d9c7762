package remote

import (
	"fmt"
	"net/http"
	"net/netip"
	"strings"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/rule"
)

// Bounds of a message and of its requests.
const (
	MaxRequests    = 1000
	MaxHeaders     = 64
	MaxCookies     = 64
	MaxQuery       = 64
	MaxDescriptors = 32
	maxMethod      = 32
	maxHost        = 300
	maxPath        = 16 << 10
	maxText        = 4 << 10
	maxValue       = 16 << 10 // A token, or the addresses of many proxies.
)

// Request is a request as a program describes it. Texts are valid UTF-8.
type Request struct {
	Method, Host, Path, IP, Subject, Domain string

	Headers, Cookies, Query []headgate.DescriptorEntry
	Descriptors             headgate.Descriptors
	// Cost is in units. 0 means that the rules set it. A protocol that can state a cost of 0 sets CostStated: 0 is
	// then a fault, because rules would take at least one unit.
	Cost       int64
	CostStated bool
	// Peek takes nothing.
	Peek bool
}

// FaultError says which part of a request is wrong, and what to send.
type FaultError struct{ Part, Problem, Fix string }

// Error gives all of it in one line.
func (f *FaultError) Error() string { return f.Part + " " + f.Problem + ": " + f.Fix }

// fill checks r and fills a zero Request of the guard. needs are those of the rules. The error is a *FaultError.
func (r *Request) fill(into *headgate.Request, needs rule.Needs) error {
	if !r.isShort() {
		if err := r.checkLengths(); err != nil {
			return err
		}
	}
	into.Method, into.Subject, into.Domain, into.Cost, into.Descriptors = r.Method, r.Subject, r.Domain, r.Cost, r.Descriptors
	into.Peek = r.Peek
	if r.Cost == 0 && r.CostStated {
		fix := fmt.Sprintf("send 1 to %d, or leave it out for the cost that the rule sets", int64(headgate.MaxUnits))
		return &FaultError{"cost", "is 0", fix}
	}
	if r.Cost < 0 || r.Cost > headgate.MaxUnits {
		return &FaultError{"cost", fmt.Sprintf("is %d", r.Cost), fmt.Sprintf("send 0 to %d, or leave it out", int64(headgate.MaxUnits))}
	}
	if needs&rule.NeedHost != 0 {
		var ok bool
		if into.Host, _, ok = rule.ParseHost(strings.Trim(r.Host, " \t")); !ok {
			return &FaultError{
				"host", quote(r.Host) + " is not a valid host name", "send it as the client did, with an international name as xn--...",
			}
		}
	}
	if err := r.fillPath(into); err != nil {
		return err
	}
	if r.IP != "" {
		at, err := netip.ParseAddr(r.IP)
		if err != nil {
			return &FaultError{"ip", quote(r.IP) + " is not an address", "send the client's address without a port, like 192.0.2.7"}
		}
		into.IP = at.Unmap().WithZone("")
	}
	return nil
}

// fillPath sets the path. Without a path, only rules that name none match.
func (r *Request) fillPath(into *headgate.Request) error {
	if r.Path == "" || r.Path == "*" && r.Method == http.MethodOptions {
		into.Path = r.Path
		return nil
	}
	clean, err := rule.CleanPath(r.Path, "", true)
	if err != nil {
		return &FaultError{
			"path", quote(r.Path) + " is ambiguous", "send a decoded path that begins with / and has no backslash or control character",
		}
	}
	into.Path = clean
	return nil
}

// isShort reports that checkLengths would find no fault. It is the quick form for usual requests.
func (r *Request) isShort() bool {
	longest := max(len(r.Host), len(r.Path), len(r.IP), len(r.Subject), len(r.Domain))
	if len(r.Method) > maxMethod || longest > maxHost || max(len(r.Headers), len(r.Cookies), len(r.Query),
		len(r.Descriptors)) > MaxDescriptors {
		return false
	}
	return areShort(r.Headers) && areShort(r.Cookies) && areShort(r.Query) && areShort(r.Descriptors)
}

// areShort reports that all entries have a name, and that all texts are as short as any may be.
func areShort(entries []headgate.DescriptorEntry) bool {
	for i := range entries {
		if e := &entries[i]; e.Name == "" || max(len(e.Name), len(e.Value)) > maxText {
			return false
		}
	}
	return true
}

// checkLengths checks the bounds of all parts.
func (r *Request) checkLengths() error {
	for _, part := range [...]struct {
		name, text string
		most       int
	}{
		{"method", r.Method, maxMethod},
		{"host", r.Host, maxHost},
		{"path", r.Path, maxPath},
		{"ip", r.IP, maxText},
		{"subject", r.Subject, maxText},
		{"domain", r.Domain, maxText},
	} {
		if len(part.text) > part.most {
			return tooLong(part.name, len(part.text), part.most)
		}
	}
	for _, list := range [...]struct {
		name    string
		entries []headgate.DescriptorEntry
		most    int
		value   int
	}{
		{"headers", r.Headers, MaxHeaders, maxValue},
		{"cookies", r.Cookies, MaxCookies, maxValue},
		{"query", r.Query, MaxQuery, maxValue},
		{"descriptors", r.Descriptors, MaxDescriptors, maxText},
	} {
		if len(list.entries) > list.most {
			return &FaultError{list.name, fmt.Sprintf("has %d entries", len(list.entries)), fmt.Sprintf("send at most %d", list.most)}
		}
		for i := range list.entries {
			e := &list.entries[i]
			switch {
			case e.Name == "":
				return &FaultError{fmt.Sprintf("%s[%d]", list.name, i), "has no name", "send one"}
			case len(e.Name) > maxText:
				return tooLong(fmt.Sprintf("%s[%d]", list.name, i), len(e.Name), maxText)
			case len(e.Value) > list.value:
				return tooLong(fmt.Sprintf("%s[%d]", list.name, i), len(e.Value), list.value)
			}
		}
	}
	return nil
}

func tooLong(part string, length, most int) error {
	return &FaultError{part, fmt.Sprintf("has %d bytes", length), fmt.Sprintf("send at most %d", most)}
}

// maxShown is the part of a text that a fault repeats, in bytes.
const maxShown = 80

func quote(text string) string {
	if len(text) > maxShown {
		return fmt.Sprintf("%q…", strings.ToValidUTF8(text[:maxShown], ""))
	}
	return fmt.Sprintf("%q", text)
}
