package rule

import (
	"bytes"
	"maps"
	"strings"
	"testing"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/testkit/property"
)

// TestCustomersAreAMap: Customers is a map, and a changed one leaves the former one as it was.
func TestCustomersAreAMap(t *testing.T) {
	property.Check(t, func(t *property.T) {
		var customers *Customers
		twin := map[string]Customer{}
		name := property.SampledFrom([]string{"", "a", "b", "c", "d", "e", "f"})
		for range property.IntRange(1, 20).Draw(t, "changes") {
			set := property.MapOf(name, property.Custom(func(t *property.T) Customer {
				return Customer{Limits: property.Uint32().Draw(t, "limits")}
			})).Draw(t, "set")
			deleted := property.SliceOf(name).Draw(t, "deleted")
			former, formerTwin := customers, maps.Clone(twin)
			customers = customers.With(set, deleted)
			for _, name := range deleted {
				delete(twin, name)
			}
			maps.Copy(twin, set)
			compareCustomers(t, customers, twin)
			compareCustomers(t, former, formerTwin)
		}
	})
}

func compareCustomers(t *property.T, c *Customers, twin map[string]Customer) {
	if all := maps.Collect(c.All); !maps.Equal(all, twin) || c.Len() != len(twin) {
		t.Fatalf("got %d customers %v, want %v", c.Len(), all, twin)
	}
	for name, want := range twin {
		if got, known := c.By(name); !known || got != want {
			t.Fatalf("customer %q: got %v, %t, want %v", name, got, known, want)
		}
	}
}

func TestRaiseEndsByItself(t *testing.T) {
	c := Customer{Limits: 1, Raised: 2, Until: 100}
	for now, want := range map[headgate.Instant]uint32{0: 2, 99: 2, 100: 1, 101: 1} {
		if got := c.At(now); got != want {
			t.Errorf("at %d: got limits %d, want %d", now, got, want)
		}
	}
	if got := (Customer{Limits: 1, Raised: 2}).At(0); got != 1 {
		t.Errorf("without a raise: got limits %d, want 1", got)
	}
}

func TestCustomersAllocateNothing(t *testing.T) {
	c := (*Customers)(nil).With(map[string]Customer{"acme": {Limits: 7}}, nil)
	r := &Rule{Name: "r", Quota: "calls", Key: parts(t, "header:X-Customer")}
	req := &headgate.Request{Header: sent{"X-Customer": "acme"}}
	buffer := make([]byte, 0, 256)
	if n := testing.AllocsPerRun(100, func() { _, _, _ = r.AppendCustomerKey(buffer, req) }); n != 0 {
		t.Errorf("AppendCustomerKey allocates %v times, want 0", n)
	}
	var found Customer
	if n := testing.AllocsPerRun(100, func() { found, _ = c.By("acme") }); n != 0 {
		t.Errorf("By allocates %v times, want 0", n)
	}
	if found.Limits != 7 {
		t.Errorf("got %+v, want limits 7", found)
	}
}

// TestCustomerKeyForm: shared stores keep these keys. The key has neither the rule's name nor the kind
// of the part.
func TestCustomerKeyForm(t *testing.T) {
	req := &headgate.Request{
		IP: addr("192.0.2.1"), Header: sent{"X-Customer": "acme", "X-Long": strings.Repeat("x", 129)},
		Descriptors: sent{"customer": "acme"}.entries(),
	}
	const acme = "\xf0\x05calls\x0e\x04acme"
	for _, c := range []struct {
		part, want, text string
		shared           bool
	}{
		{"header:X-Customer", acme, `calls customer="acme"`, false},
		{"descriptor:customer", acme, `calls customer="acme"`, false},
		{"ip", "\xf0\x05calls\x0e\x09192.0.2.1", `calls customer="192.0.2.1"`, false},
		{"header:X-None", "\xf0\x05calls\x0e\xff", "calls customer=(missing)", true},
	} {
		r := &Rule{Name: "any", Quota: "calls", Key: parts(t, c.part)}
		key, shared := r.AppendKey(nil, req)
		if string(key) != c.want || shared != c.shared {
			t.Errorf("key %s: got %q, shared %t, want %q, %t", c.part, key, shared, c.want, c.shared)
		}
		if got := r.KeyText(req); got != c.text {
			t.Errorf("key %s: got the text %q, want %q", c.part, got, c.text)
		}
		if _, name, _ := r.AppendCustomerKey(nil, req); !shared {
			if got := string(AppendKeyOfCustomer(nil, r.Quota, string(key[name:]))); got != c.want {
				t.Errorf("key %s: the key of the customer is %q, want %q", c.part, got, c.want)
			}
		}
	}
	r := &Rule{Name: "any", Quota: "calls", Key: parts(t, "header:X-Long")}
	if key, name, _ := r.AppendCustomerKey([]byte("space"), req); len(key)-name > MaxClientName || !strings.HasPrefix(string(key), "space\xf0") {
		t.Errorf("got the key %q, want the start of dst and a short name", key)
	}
}

// TestCustomersNeverShareKeys: two customers, two quotas, or a rule without a quota never share a key.
func TestCustomersNeverShareKeys(t *testing.T) {
	part := parts(t, "header:X")
	property.Check(t, func(t *property.T) {
		quota, value := property.StringMatching(`[a-z0-9]{1,64}`), property.String()
		a := &Rule{Name: "r", Quota: quota.Draw(t, "quota a"), Key: part}
		b := &Rule{Name: quota.Draw(t, "name b"), Quota: property.OneOf(quota, property.Just("")).Draw(t, "quota b"), Key: part}
		va, vb := value.Draw(t, "value a"), value.Draw(t, "value b")
		ka, _ := a.AppendKey(nil, &headgate.Request{Header: sent{"X": va}})
		kb, _ := b.AppendKey(nil, &headgate.Request{Header: sent{"X": vb}})
		if same := a.Quota == b.Quota && va == vb; bytes.Equal(ka, kb) != same {
			t.Fatalf("keys %q and %q: equal must be %t", ka, kb, same)
		}
	})
}

func TestCustomerName(t *testing.T) {
	for _, c := range []struct{ part, value, want string }{
		{"header:X", "Acme", "Acme"},
		{"ip", "192.0.2.1", "192.0.2.1"},
		{"ip", "2001:db8::7", "2001:db8::/64"},
		{"ip/24", "192.0.2.7", "192.0.2.0/24"},
		{"xff_ip/56", "2001:db8::7", "2001:db8::/56"},
		{"host", "API.Example.com", "api.example.com"},
		{"ip", "acme", ""},
		{"header:X", "", ""},
		{"all", "x", ""},
	} {
		got, err := CustomerName(parts(t, c.part)[0], c.value)
		if got != c.want || (err == nil) != (c.want != "") {
			t.Errorf("%s %q: got %q, %v, want %q", c.part, c.value, got, err, c.want)
		}
	}
}
