// Package dns takes the place of a package of lego that links the client libraries of 200 DNS services. Only
// certificates with a DNS challenge need them.
package dns

import (
	"fmt"

	"github.com/go-acme/lego/v5/challenge"
)

// NewDNSChallengeProviderByName knows no DNS service.
func NewDNSChallengeProviderByName(name string) (challenge.Provider, error) {
	return nil, fmt.Errorf("the DNS service %s: this Traefik is built without DNS services", name)
}
