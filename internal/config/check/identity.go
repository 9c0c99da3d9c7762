package check

import (
	"fmt"
	"slices"

	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/rule"
)

// Identity says which facts about the sender of a request the section identity provides. A
// fact counts as provided if its field is at fault.
type Identity struct {
	// Unknown is set if the section has an unknown field, which may be the missing one. Then no
	// part of a key is judged.
	Unknown bool
	// Trusted is set if a proxy is trusted to tell the client's address.
	Trusted bool
	// UserIP is set if a header has the user's address.
	UserIP bool
	// Regions is set if there is a region database, and Tokens if there are keys for tokens.
	Regions, Tokens bool
}

// derivedWords are the parts of keys that an identity derives.
var derivedWords = [...]string{"xff_ip", "user_ip", "region", "jwt"}

// missing says which fact a part of a key lacks. The problem is "" if it lacks none.
func (id Identity) missing(part rule.Part) (problem, fix string) {
	word := part.Word()
	if !slices.Contains(derivedWords[:], word) || id.Unknown {
		return "", ""
	}
	switch {
	case word == "user_ip" && !id.UserIP:
		return "no header has the user's address", "set identity.user_ip_headers, or use key ip"
	case (word == "user_ip" || word == "xff_ip") && !id.Trusted:
		return "no proxy is trusted to tell the address", "set identity.trusted_proxies, or use key ip"
	case word == "region" && !id.Regions:
		return "there is no database of regions", "set identity.region_db"
	case word == "jwt" && !id.Tokens:
		return "no token can be verified", "set identity.jwt.keys"
	default:
		return "", ""
	}
}

// Part finds a part of a list that the identity has no facts for. path is that of the part.
func (id Identity) Part(part rule.Part, path string) []Finding {
	problem, fix := id.missing(part)
	if problem == "" {
		return nil
	}
	return []Finding{{path, part.String() + " cannot be determined: " + problem, fix}}
}

// Keys finds parts of keys for which the identity has no facts. All requests would share one
// key, or a proxy's address would count in place of the client's.
func Keys(rules []guard.Rule, id Identity) []Finding {
	var all []Finding
	for i := range rules {
		for j, part := range rules[i].Key {
			if problem, fix := id.missing(part); problem != "" {
				all = append(all, Finding{fmt.Sprintf("rules[%d].key[%d]", i, j), part.String() + " cannot be determined: " + problem, fix})
			}
		}
	}
	return all
}
