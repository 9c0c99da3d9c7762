package rule

import (
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"

	"github.com/headgate/headgate"
)

// NamedKey is a key that its values name, and not a request.
type NamedKey struct {
	// Key is the key that AppendKey gives a request with the values. Text is its KeyText.
	Key, Text string
	// Request has the values. It has none for a value of which only the digest is known. Its path or host is one with the value of a
	// part path:{NAME} or host:{NAME} only if that is the first part.
	Request *headgate.Request
}

// NameKey finds the key of requests with these values of the key's parts, in the order of the parts. The
// parts all and none have no value. A value is the text that a request has, or what KeyText and KeyNames print:
//
//   - acme, "acme" with quotes and escapes, or header:X-Client-Id="acme";
//   - (missing) for requests without the value, also written (unknown);
//   - an address, or the network that counts as one client: 2001:db8::/64;
//   - sha256: and 32 hexadecimal digits, or the end of a shortened text, for a value above 128 bytes.
//
// A text that begins with the name of its part and = is read without them, once. The error is a *KeyError.
func (r *Rule) NameKey(values []string) (NamedKey, error) { return Folds{}.NameKey(r, values) }

// NameKey is Rule.NameKey for a service that ignores differences between paths: it folds values of paths as Path folds those of
// requests.
func (f Folds) NameKey(r *Rule, values []string) (NamedKey, error) {
	v := keyValues{rule: r, folds: f, req: new(headgate.Request), texts: map[partKind]texts{}}
	parts := make([]int, 0, len(r.Key)) // the positions of parts with a value
	for i, p := range r.Key {
		if p.kind != partNone && p.kind != partAll {
			parts = append(parts, i)
		}
	}
	if len(values) != len(parts) {
		return NamedKey{}, &KeyError{min(len(values), len(r.Key)), fmt.Sprintf("of rule %s: number of values needed: %d, given: %d",
			r.Name, len(parts), len(values)), "write a value for each of its parts: " + v.form(parts)}
	}
	v.digests, v.variables = make([]string, len(r.Key)), make([]*string, len(r.Key))
	for n, text := range values {
		i := parts[n]
		if wrong := v.read(i, text); wrong != (fault{}) {
			return NamedKey{}, &KeyError{i, "part " + r.Key[i].String() + ": " + wrong.problem, wrong.fix}
		}
	}
	key := v.key()
	v.setFirst()
	return NamedKey{Key: key, Text: r.Name + " " + string(PlainKeyNames().AppendKey(nil, key)), Request: v.req}, nil
}

// texts are values by the names of their parts. They are the headers, cookies or claims of a request.
type texts map[string]string

// Lookup implements headgate.Values.
func (t texts) Lookup(name string) (value string, ok bool) {
	value, ok = t[name]
	return value, ok
}

// keyValues makes a request of values.
type keyValues struct {
	rule    *Rule
	folds   Folds
	req     *headgate.Request
	texts   map[partKind]texts
	digests []string // by part; "" for a value that is known
	// variables are the values of parts path:{NAME} and host:{NAME} that are known.
	variables []*string
}

// form shows the values of a key.
func (v *keyValues) form(parts []int) string {
	if len(parts) == 0 {
		return "none, because all requests share one key"
	}
	words := make([]string, len(parts))
	for n, i := range parts {
		words[n] = v.rule.Key[i].String()
	}
	return strings.Join(words, " ")
}

// read reads the value of part i.
func (v *keyValues) read(i int, text string) fault {
	p := v.rule.Key[i]
	text = strings.TrimPrefix(text, p.String()+"=")
	if text == "" {
		return fault{"its value is empty", "write " + missingText + " for requests without this value"}
	}
	if text == missingText || text == unknownText {
		return fault{}
	}
	if p.isAddress() {
		return v.setAddress(p, text)
	}
	if v.digests[i] = digestText(text); v.digests[i] != "" {
		return fault{}
	}
	if text[0] == '"' {
		unquoted, err := strconv.Unquote(text)
		if err != nil {
			return fault{quote(text) + " is not a quoted text", `write a value that begins with " in quotes, with \" for each "`}
		}
		text = unquoted
	}
	switch p.kind {
	case partPathName, partHostName:
		return v.setVariable(i, text)
	case partHost:
		host, f := readHost(text)
		if f != (fault{}) {
			return f
		}
		text = host
	case partPath:
		text = v.folds.Path(text)
	case partCookie:
		if text = DecodedCookieForm(text); text == "" {
			return fault{"its value has only blanks and quotes", "write the value of the cookie"}
		}
	default:
	}
	return v.set(p, text)
}

// digestText gives the digest in a text of KeyNames or KeyText for a value above the length of keys; "" without one.
func digestText(text string) string {
	text = strings.Trim(text, `"`)
	if _, shortened, cut := strings.Cut(text, `"...(`); cut {
		_, text, _ = strings.Cut(strings.TrimSuffix(shortened, ")"), "sha256 ")
		text = digestWord + text
	}
	digits, found := strings.CutPrefix(text, digestWord)
	sum, err := hex.DecodeString(digits)
	if !found || err != nil || len(sum) != digestLength {
		return ""
	}
	return string(sum)
}

func (v *keyValues) setAddress(p Part, text string) fault {
	counted, f := p.readSubscriber(text)
	if f != (fault{}) {
		return f
	}
	switch p.kind {
	case partXFFIP, partXFFNet:
		v.req.XFFIP = counted.Addr()
	case partUserIP, partUserNet:
		v.req.UserIP = counted.Addr()
	default:
		v.req.IP = counted.Addr()
	}
	return fault{}
}

// set gives the request the value of a text part.
func (v *keyValues) set(p Part, text string) fault {
	switch p.kind {
	case partPath:
		v.req.Path = text
	case partMethod:
		v.req.Method = text
	case partHost:
		v.req.Host = text
	case partRegion:
		v.req.Region = text
	case partSubject:
		v.req.Subject = text
	case partDescriptor:
		v.req.Descriptors = append(v.req.Descriptors, headgate.DescriptorEntry{Name: p.name, Value: text})
	case partHeader, partCookie, partQuery, partClaim:
		if v.texts[p.kind] == nil {
			v.texts[p.kind] = texts{}
		}
		v.texts[p.kind][p.name] = text
		v.req.Header, v.req.Cookie, v.req.Claims = v.texts[partHeader], v.texts[partCookie], v.texts[partClaim]
		v.req.Query = v.texts[partQuery]
	case partModel, partJSON:
		if v.texts[partJSON] == nil {
			v.texts[partJSON] = texts{}
			v.req.Body = &headgate.Body{Fields: v.texts[partJSON]}
		}
		v.texts[partJSON][p.bodyPath()] = text
	default:
		return fault{"its value cannot be written", "name another rule"}
	}
	return fault{}
}

// key makes the key. A part whose value is known only by its digest is made alone: it is missing in the request, and
// the digest takes the place of the mark.
func (v *keyValues) key() string {
	key := appendName(nil, v.rule.Name)
	for i, p := range v.rule.Key {
		alone, _ := (&Rule{Key: []Part{p}}).AppendKey(nil, v.req)
		part := alone[1:] // behind the length of the empty name
		if p.kind.isVariable() {
			part = appendName([]byte{byte(p.kind)}, p.name)
			if text := v.variables[i]; text != nil {
				part = appendText(part, *text, true)
			} else {
				part = append(part, markMissing)
			}
		}
		if v.digests[i] != "" {
			part = append(append(part[:len(part)-1], markDigest), v.digests[i]...)
		}
		key = append(key, part...)
	}
	return string(key)
}

// setVariable sets the value of a part path:{NAME} or host:{NAME}, which a path or a host of the rule must have.
func (v *keyValues) setVariable(i int, text string) fault {
	p := v.rule.Key[i]
	if p.kind == partHostName || v.folds.Case {
		text = strings.ToLower(text)
	}
	if _, found := p.from.example(text); !found {
		return fault{
			"no " + partTable[p.kind].word + " of the rule's match has the value " + quote(text),
			"write what {" + p.name + "} can stand for",
		}
	}
	v.variables[i] = &text
	return fault{}
}

// setFirst gives the request a path or a host with the value of the first part.
func (v *keyValues) setFirst() {
	p := v.rule.Key[0]
	if !p.kind.isVariable() || v.variables[0] == nil {
		return
	}
	text, _ := p.from.example(*v.variables[0])
	if p.kind == partHostName {
		v.req.Host = text
	} else {
		v.req.Path = text
	}
}
