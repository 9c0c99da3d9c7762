package source_test

import (
	"fmt"

	"github.com/headgate/headgate/internal/config/source"
)

func ExampleConflictError() {
	key := source.Key{Kind: source.Customer, Name: "acme"}
	fmt.Println(&source.ConflictError{Key: key, Expected: 7, Revision: 9})
	// Output: source: customers/acme has revision 9, and the change was made for revision 7: read it again and repeat the change
}
