package rule

import (
	"strings"

	"github.com/headgate/headgate"
)

// customerMark is the first byte of a customer's key. Keys of rules begin with the length of a name,
// 1 to 64. Keys of trees begin with 0 to 0x80, or 0xFE.
const customerMark = 0xF0

// AppendCustomerKey appends the key under which a rule with a Quota counts a request: the mark of
// customers, the name of the quota, and the customer's name. The rule's name and the kind of its
// part are not in the key. A customer therefore has one count, whichever rule and protocol counts it.
//
// The customer's name is key[name:], as Part.AppendClient writes it, so it has at most MaxClientName bytes.
// It is empty for a request without the part, and shared is then true: all such requests
// have one key. AppendCustomerKey allocates nothing if dst has enough capacity.
func (r *Rule) AppendCustomerKey(dst []byte, req *headgate.Request) (key []byte, name int, shared bool) {
	dst = append(appendName(append(dst, customerMark), r.Quota), byte(partCustomer))
	length := len(dst)
	dst = append(dst, markMissing)
	name = len(dst)
	if len(r.Key) == 0 {
		return dst, name, true
	}
	key, named := r.Key[0].AppendClient(dst, req)
	if !named {
		return dst, name, true
	}
	key[length] = byte(len(key) - name)
	return key, name, false
}

// AppendKeyOfCustomer appends the key that AppendCustomerKey gives the requests of the customer with a name, as
// CustomerName returns it.
func AppendKeyOfCustomer(dst []byte, quota, name string) []byte {
	dst = append(appendName(append(dst, customerMark), quota), byte(partCustomer))
	return append(append(dst, byte(len(name))), name...)
}

// CustomerName returns the name under which a customer of the configuration is found, if a rule
// finds customers by the part. This is the name that Part.AppendClient gives a request with that
// value. The error is an *OverrideError.
func CustomerName(part Part, value string) (string, error) {
	if _, err := NewOverrides(part, []string{value}); err != nil {
		return "", err
	}
	switch {
	case part.isAddress():
		counted, _ := part.readSubscriber(value)
		return string(appendSubscriber(nil, counted)), nil
	case part.kind == partHost:
		host, _ := readHost(value)
		return ClientName(host), nil
	case part.kind == partHostName:
		return ClientName(strings.ToLower(value)), nil
	case part.kind == partCookie:
		return ClientName(CookieForm(value)), nil
	default:
		return ClientName(value), nil
	}
}

// HasSpellings reports whether CustomerName gives one name to several values of the part: an address, a host and a cookie
// can be written in several ways.
func (p Part) HasSpellings() bool {
	return p.isAddress() || p.kind == partHost || p.kind == partHostName || p.kind == partCookie
}

// withoutMark removes the mark of customers from the start of a key.
func withoutMark(key string) string {
	if key != "" && key[0] == customerMark {
		return key[1:]
	}
	return key
}
