package explain

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/internal/config/field"
	"github.com/headgate/headgate/internal/domain"
)

const descriptorExample = "write it like 'DOMAIN key=value,key=value'"

// Descriptor writes which limit decides a descriptor, and the key under which the descriptor is
// counted. The text has a domain and the entries: "shop path=/search,user=42". The error is one of
// usage, or of out.
func Descriptor(out io.Writer, domains []guard.Domain, text string) error {
	d, rest, err := domainOf(domains, text)
	if err != nil {
		return err
	}
	entries, err := entriesOf(rest)
	if err != nil {
		return err
	}
	tree, leaves, err := d.Index()
	if err != nil {
		return err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "descriptor %s\n", domain.KeyText(d.Name, entries, nil))
	var m domain.Match
	switch found := tree.Find(entries, &m); {
	case !found:
		b.WriteString("allowed: no descriptor of the domain has these keys and values, at the same depth\n")
	case m.Leaf() == domain.NoLeaf:
		fmt.Fprintf(&b, "node       %s\nallowed: the descriptor has no limits\n", nodeText(entries, &m))
	default:
		writeLeaf(&b, leaves[m.Leaf()], d.Name, entries, &m)
	}
	_, err = io.WriteString(out, b.String())
	return err
}

// Names reports whether a text begins with the name of one of the domains and a space.
func Names(domains []guard.Domain, text string) bool {
	_, _, err := domainOf(domains, text)
	return err == nil
}

// domainOf returns the domain that a text begins with, and the rest of the text. A name may have
// spaces: the longest one counts.
func domainOf(domains []guard.Domain, text string) (*guard.Domain, string, error) {
	var found *guard.Domain
	for i := range domains {
		if name := domains[i].Name; strings.HasPrefix(text, name+" ") && (found == nil || len(name) > len(found.Name)) {
			found = &domains[i]
		}
	}
	if found == nil {
		name, _, spaced := strings.Cut(text, " ")
		if !spaced {
			return nil, "", fmt.Errorf("check: the request %q has no descriptor: %s", text, descriptorExample)
		}
		return nil, "", fmt.Errorf("check: there is no domain %q: use one of %s", name, namesOf(domains))
	}
	return found, text[len(found.Name)+1:], nil
}

// maxNames bounds the names of domains in an error.
const maxNames = 20

func namesOf(domains []guard.Domain) string {
	var names []string
	for i := range domains {
		if i == maxNames {
			names = append(names, "...")
			break
		}
		names = append(names, fmt.Sprintf("%q", domains[i].Name))
	}
	return strings.Join(names, ", ")
}

// entriesOf reads key=value,key=value. A key alone has an empty value.
func entriesOf(text string) (headgate.Descriptors, error) {
	var entries headgate.Descriptors
	for entry := range strings.SplitSeq(strings.TrimSpace(text), ",") {
		key, value, _ := strings.Cut(entry, "=")
		if key == "" {
			return nil, errors.New("check: an entry of the descriptor has no key: " + descriptorExample)
		}
		entries = append(entries, headgate.DescriptorEntry{Name: key, Value: value})
	}
	if len(entries) > domain.MaxDepth {
		return nil, fmt.Errorf("check: the descriptor has %d entries: no limit has more than %d", len(entries), domain.MaxDepth)
	}
	return entries, nil
}

// nodeText names a node by the keys and the values as the file has them.
func nodeText(entries headgate.Descriptors, m *domain.Match) string {
	written := make(headgate.Descriptors, len(entries))
	for i := range entries {
		written[i] = headgate.DescriptorEntry{Name: entries[i].Name, Value: m.Value(i)}
	}
	text := strings.TrimPrefix(domain.KeyText("-", written, nil), "- ")
	return strings.ReplaceAll(text, `=""`, "")
}

func writeLeaf(b *strings.Builder, l *guard.Leaf, name string, entries headgate.Descriptors, m *domain.Match) {
	fmt.Fprintf(b, "node       %s\n", nodeText(entries, m))
	if l.Name != "" {
		fmt.Fprintf(b, "name       %q\n", l.Name)
	}
	if l.Unlimited {
		b.WriteString("allowed: the descriptor is unlimited\n")
	} else {
		limits := make([]string, len(l.Policies))
		for i, p := range l.Policies {
			limits[i] = field.FormatLimit(p)
		}
		fmt.Fprintf(b, "limits     %s, by %s\n", strings.Join(limits, " and "), l.Policies[0].Algorithm)
		fmt.Fprintf(b, "mode       %s\n", l.Mode)
		fmt.Fprintf(b, "key        %s\n", domain.KeyText(name, entries, m))
	}
	if len(l.Replaces) > 0 {
		fmt.Fprintf(b, "replaces   %q\n", l.Replaces)
	}
	if l.QuotaMode {
		b.WriteString("quota_mode a request passes as long as one of its descriptors with quota_mode passes\n")
	}
	fmt.Fprintf(b, "metric     %s\n", domain.AppendMetric(nil, name, entries, m))
}
