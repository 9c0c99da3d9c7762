package main

import (
	"context"
	"errors"
	"io"
	"os"

	"github.com/headgate/headgate/cmd/internal/ctl"
	"github.com/headgate/headgate/internal/config/source"
)

// quotaCommand reads and changes the customers of plans, and what they have used.
type quotaCommand struct {
	List   listCommand[customerName]   `cmd:"" help:"List the customers that have an entry."`
	Get    getCommand[customerName]    `cmd:"" help:"Print the entry of a customer, with its revision."`
	Set    setCommand[customerName]    `cmd:"" help:"Change fields of a customer's entry, or write a whole entry with --file."`
	Plan   planQuotaCommand            `cmd:"" help:"Give a customer another plan. What it has used in limits of one period stays counted."`
	Delete deleteCommand[customerName] `cmd:"" help:"Delete the entry of a customer, who then has the default plan."`
	Reset  resetQuotaCommand           `cmd:"" help:"Give back what a customer has used in the present windows."`
	Usage  usageQuotaCommand           `cmd:"" help:"Print what a customer has used in the present windows."`
}

// planCommand reads and changes plans.
type planCommand struct {
	List   listCommand[planName]   `cmd:"" help:"List the plans."`
	Get    getCommand[planName]    `cmd:"" help:"Print a plan, with its revision."`
	Set    setCommand[planName]    `cmd:"" help:"Change fields of a plan, or write a whole plan with --file."`
	Delete deleteCommand[planName] `cmd:"" help:"Delete a plan that no customer has."`
}

// ruleCommand reads and changes rules.
type ruleCommand struct {
	List   listCommand[ruleName]   `cmd:"" help:"List the rules."`
	Get    getCommand[ruleName]    `cmd:"" help:"Print a rule, with its revision."`
	Set    setCommand[ruleName]    `cmd:"" help:"Change fields of a rule, or write a whole rule with --file."`
	Delete deleteCommand[ruleName] `cmd:"" help:"Delete a rule."`
}

// changeFlags say how an object is changed.
type changeFlags struct {
	Revision *int64 `help:"Change it only if it has this revision; 0 means that it does not exist. Default: read it first." placeholder:"N"`
	DryRun   bool   `help:"Only check the change."`
	Reason   string `help:"Reason, for the record of the change." placeholder:"TEXT"`
	NoWait   bool   `help:"Do not wait until the change is in force. Without it, a change that is not is an error."`
}

func (f *changeFlags) change() *ctl.Change {
	change := ctl.Change(*f)
	return &change
}

// textFlags have the new text of an object.
type textFlags struct {
	Fields []string `arg:"" optional:"" name:"field=value" help:"Fields like plan=paid or 'a[\"b.c\"].d=1', in YAML; note= removes it."`
	File   string   `help:"File with the whole object in YAML or JSON; - is standard input." placeholder:"FILE"`
}

// check demands either fields or a file.
func (f *textFlags) check() error {
	if (len(f.Fields) > 0) == (f.File != "") {
		return errors.New("write either FIELD=VALUE arguments or --file FILE")
	}
	_, err := ctl.FieldsText(f.Fields)
	return err
}

// set writes an object.
func (f *textFlags) set(ctx context.Context, c *ctlCommand, stdout, stderr io.Writer, key source.Key, how *changeFlags) error {
	if err := ctl.CheckName(key.Name); err != nil {
		return err
	}
	var text string
	var err error
	if f.File != "" {
		text, err = ctl.ReadText(f.File, os.Stdin)
		text = ctl.CutHead(key, text)
	} else {
		text, err = ctl.FieldsText(f.Fields)
	}
	if err != nil {
		return ctl.NewConfigError(err)
	}
	one, err := c.one(ctx, stderr)
	if err != nil {
		return err
	}
	return one.SetObject(ctx, stdout, key, text, f.File == "", how.change())
}
