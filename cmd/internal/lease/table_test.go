package lease

import (
	"strings"
	"testing"

	"github.com/headgate/headgate/cmd/internal/admin"
)

// TestWriteLeases has the tables of a root, and of one resource of a leaf.
func TestWriteLeases(t *testing.T) {
	one := admin.LeasedResource{Name: "db/orders", Unit: "rate", Capacity: 500, Wants: 900.5, Has: 500, Ledger: 500, Claims: 3}
	leaf := one
	leaf.EndSeconds, leaf.Holders = 12.34, []admin.LeaseHolder{{Holder: "q7ad2x", Caller: "batch", Wants: 900.5, Has: 400, Ledger: 410, Below: 7, EndSeconds: 9}}
	for what, row := range map[string]struct {
		leases admin.Leases
		want   string
	}{
		"a root": {admin.Leases{Resources: []admin.LeasedResource{one}}, `root

RESOURCE     UNIT  CAPACITY  WANTS  HAS  LEDGER  UNKNOWN  CLAIMS  ENDS IN
"db/orders"  rate  500       900.5  500  500     0        3       -
`},
		"a root with servers below and limits": {admin.Leases{
			Limits: &admin.LeaseLimits{InForce: 1, Fault: "no \x1b answer", Refused: map[string]string{"sms": "too fine"}},
			Resources: []admin.LeasedResource{{Name: "mail", Unit: "rate", Capacity: 5, Wants: 9, Has: 5, Ledger: 5, Claims: 30, MoreServers: 4, Servers: []admin.LeaseHolder{
				{Holder: "q7ad2x", Caller: "leaf-eu", Wants: 6, Has: 3, Ledger: 3, Below: 4000, EndSeconds: 14.2},
			}}},
		}, `root

capacities from headgate ctl limit: 1
the limits of headgate ctl limit cannot be read, the last ones stay: no \x1b answer
limit of sms refused: too fine

RESOURCE                   UNIT  CAPACITY  WANTS  HAS  LEDGER  UNKNOWN  CLAIMS  ENDS IN
"mail"                     rate  5         9      5    5       0        30      -
  server leaf-eu "q7ad2x"                  6      3    3                4000    14.2s
  and 4 more servers                                                            -
`},
		"a leaf": {admin.Leases{Parent: "root:8081", Child: true, Resources: []admin.LeasedResource{leaf}}, `below root:8081

RESOURCE     UNIT  CAPACITY  WANTS  HAS  LEDGER  UNKNOWN  CLAIMS  ENDS IN
"db/orders"  rate  500       900.5  500  500     0        3       12.3s

HOLDER    CALLER  BELOW  WANTS  HAS  LEDGER  ENDS IN
"q7ad2x"  batch   7      900.5  400  410     9s

The list is incomplete: 2 smaller claims are not listed.
`},
		"a master": {admin.Leases{Group: "eu", Master: "eu-1:8081", Mine: true}, `root

group "eu": this server is the master, "eu-1:8081"

RESOURCE  UNIT  CAPACITY  WANTS  HAS  LEDGER  UNKNOWN  CLAIMS  ENDS IN
`},
		"another server is the master": {admin.Leases{Group: "eu", Master: "eu-2:8081"}, `root

group "eu": the master is "eu-2:8081", which has the leases

RESOURCE  UNIT  CAPACITY  WANTS  HAS  LEDGER  UNKNOWN  CLAIMS  ENDS IN
`},
		"no master": {admin.Leases{Group: "eu"}, `root

group "eu": no master is known

RESOURCE  UNIT  CAPACITY  WANTS  HAS  LEDGER  UNKNOWN  CLAIMS  ENDS IN
`},
	} {
		var b strings.Builder
		if err := Write(&b, &row.leases); err != nil || b.String() != row.want {
			t.Errorf("%s: got\n%s%v, want\n%s", what, b.String(), err, row.want)
		}
	}
}
