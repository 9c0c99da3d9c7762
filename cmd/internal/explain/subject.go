package explain

import (
	"crypto/x509/pkix"
	"fmt"
	"strings"
)

const subjectExample = "write it like 'CN=billing,O=Example'"

// parseSubject parses a distinguished name in the form of RFC 2253. The order of its attributes
// does not matter, because rules see them in the order of pkix.Name.
func parseSubject(text string) (pkix.Name, error) {
	var name pkix.Name
	for _, part := range splitSubject(text) {
		kind, value, found := strings.Cut(part, "=")
		kind, value = strings.ToUpper(strings.TrimSpace(kind)), unescape(strings.TrimSpace(value))
		if !found || value == "" {
			return name, fmt.Errorf("check: %q in the subject %q has no value: %s", part, text, subjectExample)
		}
		switch kind {
		case "CN":
			name.CommonName = value
		case "SERIALNUMBER":
			name.SerialNumber = value
		default:
			into := listOf(&name, kind)
			if into == nil {
				return name, fmt.Errorf("check: the subject %q has the unknown part %q: "+
					"use CN, SERIALNUMBER, C, O, OU, L, ST, STREET or POSTALCODE", text, kind)
			}
			*into = append(*into, value)
		}
	}
	return name, nil
}

// listOf returns the field of an attribute that can have several values. It returns nil for
// other attributes.
func listOf(name *pkix.Name, kind string) *[]string {
	switch kind {
	case "C":
		return &name.Country
	case "O":
		return &name.Organization
	case "OU":
		return &name.OrganizationalUnit
	case "L":
		return &name.Locality
	case "ST":
		return &name.Province
	case "STREET":
		return &name.StreetAddress
	case "POSTALCODE":
		return &name.PostalCode
	default:
		return nil
	}
}

// splitSubject splits at commas and plus signs that have no backslash before them.
func splitSubject(text string) []string {
	var parts []string
	from, escaped := 0, false
	for i := range len(text) {
		switch c := text[i]; {
		case escaped:
			escaped = false
		case c == '\\':
			escaped = true
		case c == ',' || c == '+':
			parts, from = append(parts, text[from:i]), i+1
		}
	}
	return append(parts, text[from:])
}

func unescape(text string) string {
	var b strings.Builder
	escaped := false
	for i := range len(text) {
		if text[i] == '\\' && !escaped {
			escaped = true
			continue
		}
		escaped = false
		b.WriteByte(text[i])
	}
	return b.String()
}
