package rule

import (
	"errors"
	"fmt"
	"net/netip"

	"github.com/headgate/headgate"
)

// Overrides finds the entry of a list that has the value of one key part in a request. The entries are the values, networks and
// patterns with their own limits. Overrides is immutable and safe for concurrent use. A nil Overrides finds nothing.
type Overrides struct {
	part     Part
	texts    map[string]int
	networks networkIndex
	// patterns are those of a text part, in the order of the entries.
	patterns []overridePattern
}

type overridePattern struct {
	pattern

	entry int
}

// MaxOverridePatterns bounds the patterns of one list, because a request without an exact value is compared with each of them.
const MaxOverridePatterns = 100

// Override is an entry of a list: a value, or many.
type Override struct {
	Value string
	// Many says that Value is written as in a match. For an address it may be a network ("10.0.0.0/8"), and for other parts a
	// pattern ("gold-*").
	Many bool
}

// NewOverrides parses the values of a configuration. A request has a value when both
// would count under one key:
//
//   - ip, xff_ip, user_ip: an address ("192.0.2.1") or, with the same meaning, the
//     network that keys count as one ("192.0.2.1/32", "2001:db8::/64");
//   - host: one host, in any case, without port;
//   - cookie:NAME: the value as a client sends it. A % of CookieForm is %25 here;
//   - method, path, region: the value that rules match and Regions returns;
//   - every other part: the text of the request, of any length.
//
// The part all has no values, so it is invalid here. The error is an *OverrideError.
// For several faults it joins the errors (errors.Join), and errors.As finds the first.
func NewOverrides(part Part, values []string) (*Overrides, error) {
	entries := make([]Override, len(values))
	for i, value := range values {
		entries[i].Value = value
	}
	return NewManyOverrides(part, entries)
}

// NewManyOverrides is NewOverrides for entries that may be networks and patterns. Find prefers an exact value to a pattern, a long
// network to a short one, and patterns in the order of the entries.
func NewManyOverrides(part Part, entries []Override) (*Overrides, error) {
	o := &Overrides{part: part, texts: map[string]int{}}
	numbers := map[netip.Prefix]int{}
	var faults []error
	for i := range entries {
		var f fault
		if part.isAddress() {
			f = o.addNetwork(i, entries, numbers)
		} else {
			f = o.addText(i, entries)
		}
		if f != (fault{}) {
			faults = append(faults, &OverrideError{i, f.problem, f.fix})
		}
	}
	switch len(faults) {
	case 0:
		o.networks = newNetworkIndex(numbers)
		return o, nil
	case 1:
		return nil, faults[0]
	default:
		return nil, errors.Join(faults...)
	}
}

// addNetwork parses entry i of an address part. It reads the entries before i to name a duplicate in its fault.
func (o *Overrides) addNetwork(i int, entries []Override, numbers map[netip.Prefix]int) fault {
	value := entries[i].Value
	network, wide := netip.Prefix{}, false
	f := fault{}
	if entries[i].Many {
		network, wide, f = o.part.readWide(value)
	}
	if !wide && f == (fault{}) {
		network, f = o.part.readSubscriber(value)
	}
	if f != (fault{}) {
		return f
	}
	if first, twice := numbers[network]; twice {
		return again(value, entries[first].Value)
	}
	numbers[network] = i
	return fault{}
}

// readWide parses a network of many clients. wide is false for other texts.
func (p Part) readWide(text string) (network netip.Prefix, wide bool, f fault) {
	network, err := netip.ParsePrefix(text)
	if err != nil || network.Addr().Is4In6() {
		return network, false, fault{}
	}
	if network.Bits() >= p.subscriber(network.Addr()).Bits() {
		return network, false, fault{}
	}
	if masked := network.Masked(); masked != network {
		return network, false, fault{quote(text) + " has an address within its network", "write " + masked.String()}
	}
	return network, true, fault{}
}

// addText parses entry i of a text part.
func (o *Overrides) addText(i int, entries []Override) fault {
	value := entries[i].Value
	if entries[i].Many {
		p, text, f := readMany(o.part.kind, value)
		if f != (fault{}) {
			return overrideFault(o.part.kind, value, f)
		}
		if _, one := p.literal(); !one {
			return o.addPattern(i, entries, p)
		}
		return o.addLiteral(i, entries, text)
	}
	text, f := readOverride(o.part.kind, value)
	if f != (fault{}) {
		return f
	}
	return o.addLiteral(i, entries, text)
}

// addLiteral adds entry i, which stands for one text.
func (o *Overrides) addLiteral(i int, entries []Override, text string) fault {
	if first, twice := o.texts[text]; twice {
		return again(entries[i].Value, entries[first].Value)
	}
	o.texts[text] = i
	return fault{}
}

func (o *Overrides) addPattern(i int, entries []Override, p pattern) fault {
	if len(o.patterns) == MaxOverridePatterns {
		return fault{quote(entries[i].Value) + fmt.Sprintf(" is one of more than %d patterns", MaxOverridePatterns), "write the values"}
	}
	for _, former := range o.patterns {
		if entries[former.entry].Value == entries[i].Value {
			return again(entries[i].Value, entries[i].Value)
		}
	}
	o.patterns = append(o.patterns, overridePattern{p, i})
	return fault{}
}

// textKind says how patterns of a part are read.
func (k partKind) textKind() textKind {
	switch k {
	case partPath:
		return textPath
	case partHost:
		return textHost
	case partMethod:
		return textMethod
	default:
		return textValue
	}
}

func again(value, first string) fault {
	return fault{quote(value) + " duplicates " + quote(first), "remove one of them"}
}

// Find returns the position of the entry that has the value of the request, or reports false. It
// allocates nothing.
func (o *Overrides) Find(req *headgate.Request) (index int, ok bool) {
	if o == nil {
		return 0, false
	}
	if o.part.isAddress() {
		return o.findNetwork(req)
	}
	value, present := o.part.lookup(req)
	if !present {
		return 0, false
	}
	if index, ok = o.texts[value]; ok || len(o.patterns) == 0 {
		return index, ok
	}
	return o.findPattern(value, 0)
}

func (o *Overrides) findNetwork(req *headgate.Request) (index int, ok bool) {
	client := o.part.subscriber(o.part.address(req))
	if !client.IsValid() {
		return 0, false
	}
	index = o.networks.find(client)
	return index, index != noNetwork
}

// findPattern compares a value with the patterns, from a position on.
func (o *Overrides) findPattern(value string, from int) (index int, ok bool) {
	for i := from; i < len(o.patterns); i++ {
		if o.patterns[i].match(value) {
			return o.patterns[i].entry, true
		}
	}
	return 0, false
}

// Patterns returns the number of patterns in the list.
func (o *Overrides) Patterns() int {
	if o == nil {
		return 0
	}
	return len(o.patterns)
}

// Next returns the position of the entry that applies to a request if the entry that Find or Next has returned does not: the
// network around it, or the next pattern. It allocates nothing.
func (o *Overrides) Next(req *headgate.Request, index int) (next int, ok bool) {
	if o.part.isAddress() {
		next = o.networks.around[index]
		return next, next != noNetwork
	}
	value, present := o.part.lookup(req)
	if !present {
		return 0, false
	}
	at := 0
	for i := range o.patterns {
		if o.patterns[i].entry == index {
			at = i + 1
		}
	}
	return o.findPattern(value, at)
}
