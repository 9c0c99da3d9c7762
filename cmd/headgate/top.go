package main

import (
	"context"
	"fmt"
	"io"
	"net/url"
	"strconv"
	"text/tabwriter"
	"time"

	"github.com/headgate/headgate/internal/app"
)

type topCommand struct {
	Rule string `arg:"" optional:"" help:"Name of a rule, or fair_share; without it, all of them."`
	Top  int    `help:"How many keys to list, 1 to 1024." default:"20" placeholder:"N"`
}

// Run prints the keys with most refusals, as a table or as they came.
func (t topCommand) Run(ctx context.Context, c *ctlCommand, stdout io.Writer) error {
	page := "/api/v1/top?" + url.Values{"rule": {t.Rule}, "top": {strconv.Itoa(t.Top)}}.Encode()
	return show(ctx, c, page, stdout, writeTop)
}

func writeTop(out io.Writer, t *app.Top) error {
	since := time.Since(t.Since).Round(time.Second)
	if len(t.Keys) == 0 {
		_, err := fmt.Fprintf(out, "no refusals in the last %s\n", since)
		return err
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	rowf(w, "REFUSALS\tAT MOST TOO HIGH BY\tRULE\tKEY\n")
	for _, k := range t.Keys {
		rowf(w, "%d\t%d\t%s\t%s\n", k.Refusals, k.Error, k.Rule, k.Key)
	}
	rowf(w, "\n%d refusals of all keys in the last %s.\n", t.Total, since)
	return w.Flush()
}
