package etcd

import (
	"fmt"
	"strings"
)

// DefaultPrefix is the default prefix of all keys.
const DefaultPrefix = "/headgate/pace/"

const (
	maxName   = 128 // bytes of a provider's or an instance's name
	maxPrefix = 256 // bytes
)

// keys gives the keys of one provider.
type keys struct{ base string }

func keysOf(prefix, provider string) keys { return keys{prefix + provider + "/"} }

func (k keys) limit() string           { return k.base + "limit" }
func (k keys) plan() string            { return k.base + "plan" }
func (k keys) brake() string           { return k.base + "brake" }
func (k keys) members() string         { return k.base + "members/" }
func (k keys) member(id string) string { return k.members() + id }

// checkName gives an error for a name that cannot be part of a key.
func checkName(what, name string) error {
	if name == "" || len(name) > maxName {
		return fmt.Errorf("pace/etcd: %s of %d bytes: use 1 to %d", what, len(name), maxName)
	}
	for i := range len(name) {
		if c := name[i]; !letter(c) && !strings.ContainsRune("0123456789._:-", rune(c)) {
			return fmt.Errorf("pace/etcd: %s %.*q has %q: use A-Z, a-z, 0-9 and . _ : - only", what, maxName, name, c)
		}
	}
	return nil
}

func letter(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' }

// checkPrefix gives the prefix with its default.
func checkPrefix(prefix string) (string, error) {
	switch {
	case prefix == "":
		return DefaultPrefix, nil
	case len(prefix) > maxPrefix || !strings.HasSuffix(prefix, "/"):
		return "", fmt.Errorf("pace/etcd: prefix %.*q: use one that ends with / and has at most %d bytes", maxPrefix, prefix, maxPrefix)
	}
	return prefix, nil
}
