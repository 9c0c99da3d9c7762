package logs

import "github.com/headgate/headgate/rule"

// Hasher makes the hashes of log.identity, so that values of a configuration can be compared with those of a log.
type Hasher struct{ names *rule.KeyNames }

// NewHasher returns the Hasher of a secret, which is the content of log.keys_secret_file without its line end.
func NewHasher(secret []byte) *Hasher { return &Hasher{rule.HashedKeyNames(secret)} }

// Hash returns the hash of a value of a key part. An address is the text of its network, such as 192.0.2.1 or 2001:db8::/64.
func (h *Hasher) Hash(part rule.Part, value string) string {
	return string(h.names.AppendValue(nil, part, value))
}
