package source_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/headgate/headgate/internal/config/source"
)

// A key is written like rules/NAME, and the name may have slashes.
func ExampleParseKey() {
	k, err := source.ParseKey("customers/acme/eu")
	fmt.Println(k.Kind, k.Name, err)
	_, err = source.ParseKey("customer/acme")
	fmt.Println(err)
	// Output:
	// customer acme/eu <nil>
	// source: "customer/acme" is not an object: write rules/NAME, plans/NAME or customers/NAME
}

// TestKeys checks that a key's text is read again as the key, and which names are refused.
func TestKeys(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"a", "a/b", "/", "Ünïcode \U0001F6A6", `"'\`, strings.Repeat("n", source.MaxName)} {
		for _, kind := range source.Kinds() {
			k := source.Key{Kind: kind, Name: name}
			if got, err := source.ParseKey(k.String()); got != k || err != nil || k.Check() != nil {
				t.Errorf("%s: %v, %v, %v", k, got, err, k.Check())
			}
		}
	}
	for _, text := range []string{"", "customers", "customers/", "customer/a", "Rules/a", "rules/a\n", "rules/\xff", "plans/" + strings.Repeat("n", 257)} {
		if k, err := source.ParseKey(text); err == nil {
			t.Errorf("%q is taken as %v", text, k)
		}
	}
}
