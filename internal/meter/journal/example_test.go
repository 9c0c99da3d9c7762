package journal_test

import (
	"fmt"
	"os"

	"github.com/headgate/headgate/internal/meter/journal"
)

// A record stays until its reader acknowledges it.
func Example() {
	folder, err := os.MkdirTemp("", "journal")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(folder)
	j, err := journal.Open(journal.Config{Folder: folder, Instance: "eu-1", Readers: []string{"bills"}})
	if err != nil {
		panic(err)
	}
	defer j.Close()
	if _, err := j.Append([]journal.Record{{Customer: "acme", Quota: "calls", Admitted: 3}}, true); err != nil {
		panic(err)
	}
	bills := j.Reader("bills")
	records, _ := bills.Read(10)
	fmt.Println(records[0].Customer, records[0].Admitted, "pending", bills.Stats().Pending)
	_ = bills.Ack(len(records))
	fmt.Println("pending", bills.Stats().Pending)
	// Output:
	// acme 3 pending 1
	// pending 0
}
