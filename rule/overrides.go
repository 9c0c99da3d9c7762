package rule

import (
	"errors"
	"net/netip"

	"github.com/headgate/headgate"
)

// Overrides finds which of a list of values a request has in one part of a key:
// the values that a rule has limits of their own for. It is immutable and may be
// used by many goroutines at once. A nil Overrides finds nothing.
type Overrides struct {
	part  Part
	texts map[string]int
	// subscribers hold addresses as keys count them: IPv4 whole, and the /64 of IPv6.
	subscribers map[netip.Prefix]int
}

// NewOverrides reads the values as configurations write them. A request has a
// value when both would count under one key:
//
//   - ip, xff_ip, user_ip: an address ("192.0.2.1") or, with the same meaning, the
//     network that keys count as one ("192.0.2.1/32", "2001:db8::/64");
//   - host: one host, in any case, without port;
//   - method, path, region: as rules match them and Regions gives them;
//   - every other part: the text as the request has it, of any length.
//
// There are none for all, which has no values. The error is an *OverrideError or,
// for several faults, joins them (errors.Join); errors.As finds the first.
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

// add reads value i. The values before it are there to be named when it is one of
// them again.
func (o *Overrides) add(i int, value string, values []string) fault {
	if o.part.isAddress() {
		subscriber, f := readSubscriber(value)
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
	return fault{quote(value) + " is " + quote(first) + " again", "leave one out"}
}

// Find gives the position of the value that the request has, or reports false. It
// allocates nothing.
func (o *Overrides) Find(req *headgate.Request) (index int, ok bool) {
	if o == nil {
		return 0, false
	}
	if o.part.isAddress() {
		// Of an address that is not valid this is the zero Prefix, which is never there.
		index, ok = o.subscribers[subscriber(o.part.address(req))]
		return index, ok
	}
	value, present := o.part.lookup(req)
	if !present {
		return 0, false
	}
	index, ok = o.texts[value]
	return index, ok
}
