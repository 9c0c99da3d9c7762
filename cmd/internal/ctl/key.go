package ctl

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/headgate/headgate/cmd/internal/admin"
	"github.com/headgate/headgate/cmd/internal/rules"
)

// KeyOrder makes the body of a call about a key. args are the name of a rule and the values of its key, or with a domain the
// entries of a descriptor as NAME=VALUE.
func KeyOrder(domain string, args []string) (*admin.KeyOrder, error) {
	order := &admin.KeyOrder{Domain: domain}
	if domain == "" {
		order.Rule = args[0]
		for i := range args[1:] {
			order.Values = append(order.Values, &args[1+i])
		}
		return order, nil
	}
	for _, text := range args {
		name, value, found := strings.Cut(text, "=")
		if !found || name == "" {
			return nil, fmt.Errorf("the entry %.64q of the descriptor has no name and value: write NAME=VALUE", text)
		}
		order.Entries = append(order.Entries, admin.KeyEntry{Name: name, Value: value})
	}
	return order, nil
}

// Keys are the instances that one command about a key asks, in their order.
type Keys struct {
	*Fleet

	Out io.Writer
}

// Get prints what a key has used: in the store that the instances share, or in the memory of each.
func (k *Keys) Get(ctx context.Context, order *admin.KeyOrder) error {
	return k.each(ctx, "get", order, func(key *admin.Key) error { return rules.WriteKey(k.Out, key) })
}

// Change resets, bans or unbans a key, and prints what it was. With a shared store, it does so once, and otherwise in each instance.
func (k *Keys) Change(ctx context.Context, action string, order *admin.KeyOrder) error {
	return k.each(ctx, action, order, func(key *admin.Key) error { return rules.WriteKeyChange(k.Out, action, key) })
}

// each makes a call in the first instance that has a shared store, and in each instance that counts in its memory. The error has
// those of all instances.
func (k *Keys) each(ctx context.Context, action string, order *admin.KeyOrder, write func(*admin.Key) error) error {
	body, err := json.Marshal(order)
	if err != nil {
		return fmt.Errorf("ctl: %w", err)
	}
	all, many, err := k.instances(ctx)
	if err != nil {
		return err
	}
	shared := ""
	var failed error
	for _, one := range all {
		address := one.Admin
		if many && !k.JSON {
			_, _ = fmt.Fprintf(k.Out, "%s\n", address)
		}
		if shared != "" { // A change must not be made twice in one store.
			key, _, err := one.key(ctx, "get", string(body))
			if err == nil && key.Shared {
				if !k.JSON {
					_, _ = fmt.Fprintf(k.Out, "has a shared store, as %s has\n", shared)
				}
				continue
			}
		}
		key, text, err := one.key(ctx, action, string(body))
		switch {
		case err != nil:
			failed = errors.Join(failed, err)
			continue
		case key.Shared:
			shared = address
		}
		if k.JSON {
			_, err = k.Out.Write(text)
		} else {
			err = write(key)
		}
		if err != nil {
			return err
		}
	}
	return failed
}

// key makes one call.
func (c *Instance) key(ctx context.Context, action, body string) (*admin.Key, []byte, error) {
	text, err := c.call(ctx, http.MethodPost, "/api/v1/key/"+action, body)
	if err != nil {
		return nil, nil, err
	}
	key := new(admin.Key)
	return key, text, c.decode(text, key)
}
