// Package zerovalues_test holds that the exported types of the library that decide
// something do not panic, and let nothing pass, when no constructor made them.
package zerovalues_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"reflect"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/config/open"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/guard/fairshare"
	"github.com/headgate/headgate/guard/report"
	"github.com/headgate/headgate/internal/fields"
	"github.com/headgate/headgate/internal/pace/backoff"
	"github.com/headgate/headgate/internal/store/breaker"
	"github.com/headgate/headgate/internal/store/meta"
	"github.com/headgate/headgate/internal/store/prefetch"
	"github.com/headgate/headgate/limiter"
	"github.com/headgate/headgate/middleware/httplimit"
	"github.com/headgate/headgate/pace"
	"github.com/headgate/headgate/pace/dogma"
	"github.com/headgate/headgate/pace/etcd"
	"github.com/headgate/headgate/pace/grpcpace"
	"github.com/headgate/headgate/pace/httppace"
	"github.com/headgate/headgate/rule"
	"github.com/headgate/headgate/rule/jwt"
	"github.com/headgate/headgate/store/memcached"
	"github.com/headgate/headgate/store/memory"
	"github.com/headgate/headgate/store/redis"
)

// zeros are the types that hold state and have methods. nils says that a nil pointer
// is as harmless: a program that drops a constructor's error has one.
var zeros = []struct {
	value any
	nils  bool
}{
	{new(guard.Guard), true},
	{new(guard.State), false},
	{new(guard.Answer), false},
	{new(limiter.Keyed), true},
	{new(limiter.Single), true},
	{new(memory.Store), true},
	{new(redis.Store), true},
	{new(memcached.Store), true},
	{new(prefetch.Store), true},
	{new(pace.Pacer), true},
	{new(pace.Ticket), false},
	{new(fairshare.Limiter), false},
	{new(report.Report), false},
	{new(httppace.Transport), false},
	{new(grpcpace.Pacing), false},
	{new(backoff.Listener), false},
	{new(backoff.Listeners), false},
	{new(etcd.Source), false},
	{new(etcd.Limits), false},
	{new(dogma.Source), false},
	{new(rule.Index), false},
	{new(rule.Identity), true},
	{new(rule.Overrides), false},
	{new(jwt.Verifier), false},
	{new(open.RegionDB), false},
	{new(breaker.Breaker), false},
	{new(meta.Client), false},
	{new(httplimit.Exchange), false},
	{new(fields.Announcer), false},
}

// No method of a zero value panics.
func TestZeroValues(t *testing.T) {
	for _, z := range zeros {
		v := reflect.ValueOf(z.value)
		t.Run(v.Type().String(), func(t *testing.T) {
			callAll(t, "zero", v)
			if z.nils {
				callAll(t, "nil", reflect.Zero(v.Type()))
			}
		})
	}
}

// callAll calls every method, each with arguments that do no harm.
func callAll(t *testing.T, what string, v reflect.Value) {
	t.Helper()
	for i := range v.NumMethod() {
		method, name := v.Method(i), v.Type().Method(i).Name
		func() {
			defer func() {
				if r := recover(); r != nil {
					t.Errorf("%s of a %s value panics: %v", name, what, r)
				}
			}()
			for _, result := range method.Call(arguments(t, method.Type())) {
				if d, ok := reflect.TypeAssert[headgate.Decision](result); ok && d.Verdict != headgate.Deny {
					t.Errorf("%s of a %s value decides %+v, want Deny", name, what, d)
				}
			}
		}()
	}
}

// arguments are one of each kind that a method takes, and none of a variadic.
func arguments(t *testing.T, m reflect.Type) []reflect.Value {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	t.Cleanup(cancel)
	request := httptest.NewRequestWithContext(ctx, http.MethodGet, "/", http.NoBody)
	known := []any{ctx, httptest.NewRecorder(), request, new(guard.Answer), &guard.Ticket{Answer: new(guard.Answer)}, new(headgate.Request), new(headgate.Op), new(headgate.Decision), new(guard.Config)}
	var values []reflect.Value
	for i := range m.NumIn() {
		if m.IsVariadic() && i == m.NumIn()-1 {
			break
		}
		values = append(values, argument(m.In(i), known))
	}
	return values
}

func argument(kind reflect.Type, known []any) reflect.Value {
	for _, k := range known {
		if v := reflect.ValueOf(k); v.Type().AssignableTo(kind) {
			return v
		}
	}
	switch kind.Kind() {
	case reflect.Slice:
		return reflect.MakeSlice(kind, 1, 1)
	case reflect.Func:
		return reflect.MakeFunc(kind, func([]reflect.Value) []reflect.Value {
			results := make([]reflect.Value, kind.NumOut())
			for i := range results {
				results[i] = reflect.Zero(kind.Out(i))
			}
			return results
		})
	case reflect.Int:
		return reflect.ValueOf(http.StatusBadRequest) // The only one is a status.
	case reflect.Int64:
		return reflect.ValueOf(int64(1)).Convert(kind)
	default:
		return reflect.Zero(kind)
	}
}

// What decides says that no constructor made it, and what to do.
func TestNotMade(t *testing.T) {
	ctx := t.Context()
	op, d := []headgate.Op{{Cost: 1}}, make([]headgate.Decision, 1)
	for name, decide := range map[string]func() error{
		"guard.Guard": func() error {
			var a guard.Answer
			err := new(guard.Guard).Decide(ctx, new(headgate.Request), &a)
			d[0].Verdict = a.Verdict
			return err
		},
		"limiter.Keyed":   func() error { return new(limiter.Keyed).Take(ctx, "k", 1, &d[0]) },
		"limiter.Single":  func() error { return new(limiter.Single).Take(1, &d[0]) },
		"memory.Store":    func() error { return new(memory.Store).Apply(ctx, op, d) },
		"redis.Store":     func() error { return new(redis.Store).Apply(ctx, op, d) },
		"memcached.Store": func() error { return new(memcached.Store).Apply(ctx, op, d) },
		"prefetch.Store":  func() error { return new(prefetch.Store).Apply(ctx, op, d) },
		"pace.Pacer":      func() error { d[0].Verdict = headgate.Deny; return new(pace.Pacer).Acquire(ctx, time.Second) },
	} {
		d[0] = headgate.Decision{}
		if err := decide(); !errors.Is(err, headgate.ErrNotMade) || d[0].Verdict != headgate.Deny {
			t.Errorf("%s: %v, verdict %v, want ErrNotMade and deny", name, err, d[0].Verdict)
		}
	}
}
