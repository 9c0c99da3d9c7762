package rule

import (
	"errors"
	"net/netip"

	"github.com/headgate/headgate"
)

// Overrides finds the entry of a list that equals the value of one key part in a
// request. The entries are the values with their own limits. Overrides is immutable and safe
// for concurrent use. A nil Overrides finds nothing.
type Overrides struct {
	part  Part
	texts map[string]int
	// subscribers has addresses as keys count them: IPv4 addresses and /64 of IPv6, or the networks of the part.
	subscribers map[netip.Prefix]int
}

// NewOverrides parses the values of a configuration. A request has a value when both
// would count under one key:
//
//   - ip, xff_ip, user_ip: an address ("192.0.2.1") or, with the same meaning, the
//     network that keys count as one ("192.0.2.1/32", "2001:db8::/64"; with ip/24 "192.0.2.0/24");
//   - host: one host, in any case, without port;
//   - cookie:NAME: the value as a client sends it. A % of CookieForm is %25 here;
//   - method, path, region: the value that rules match and Regions returns;
//   - every other part: the text of the request, of any length.
//
// The part all has no values, so it is invalid here. The error is an *OverrideError.
// For several faults it joins the errors (errors.Join), and errors.As finds the first.
func NewOverrides(part Part, values []string) (*Overrides, error) {
	o := &Overrides{part: part, texts: map[string]int{}, subscribers: map[netip.Prefix]int{}}
	var faults []error
	for i, value := range values {
		if f := o.add(i, value, values); f != (fault{}) {
			faults = append(faults, &OverrideError{i, f.problem, f.fix})
		}
	}
	switch len(faults) {
	case 0:
		return o, nil
	case 1:
		return nil, faults[0]
	default:
		return nil, errors.Join(faults...)
	}
}

// add parses value i. add reads the values before i to name a duplicate in its fault.
func (o *Overrides) add(i int, value string, values []string) fault {
	if o.part.isAddress() {
		subscriber, f := o.part.readSubscriber(value)
		if f != (fault{}) {
			return f
		}
		if first, twice := o.subscribers[subscriber]; twice {
			return again(value, values[first])
		}
		o.subscribers[subscriber] = i
		return fault{}
	}
	text, f := readOverride(o.part.kind, value)
	if f != (fault{}) {
		return f
	}
	if first, twice := o.texts[text]; twice {
		return again(value, values[first])
	}
	o.texts[text] = i
	return fault{}
}

func again(value, first string) fault {
	return fault{quote(value) + " duplicates " + quote(first), "remove one of them"}
}

// Find returns the position of the value that the request has, or reports false. It
// allocates nothing.
func (o *Overrides) Find(req *headgate.Request) (index int, ok bool) {
	if o == nil {
		return 0, false
	}
	if o.part.isAddress() {
		// An invalid address gives the zero Prefix, which the map never has.
		index, ok = o.subscribers[o.part.subscriber(o.part.address(req))]
		return index, ok
	}
	value, present := o.part.lookup(req)
	if !present {
		return 0, false
	}
	index, ok = o.texts[value]
	return index, ok
}
