package httpdecide

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"reflect"
	"strconv"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/cmd/internal/access"
	"github.com/headgate/headgate/cmd/internal/remote"
	"github.com/headgate/headgate/guard"
)

// message is one POST, with memory that later ones use again.
type message struct {
	body    []byte
	batch   remote.Batch
	alone   bool // The message is one request, not a list.
	encoded []byte
	// decision is the name of the last refusal, if the answer has it.
	decision []byte
}

// request is a request as it is sent.
type request struct {
	Method      string      `json:"method"`
	Host        string      `json:"host"`
	Path        string      `json:"path"`
	IP          string      `json:"ip"`
	Headers     headers     `json:"headers"`
	Cookies     cookies     `json:"cookies"`
	Query       query       `json:"query"`
	Subject     string      `json:"subject"`
	Domain      string      `json:"domain"`
	Descriptors descriptors `json:"descriptors"`
	Cost        int64       `json:"cost"`
	Peek        bool        `json:"peek"`
}

type (
	headers     []headgate.DescriptorEntry
	cookies     []headgate.DescriptorEntry
	query       []headgate.DescriptorEntry
	descriptors headgate.Descriptors
	entry       struct {
		Key   string `json:"key"`
		Value string `json:"value"`
	}
)

// decode decodes the body, and adds its requests to the batch. The error says where the fault is.
func (m *message) decode(g *guard.Guard, client *access.Client) error {
	m.batch.Begin(g, client, true)
	start := bytes.TrimLeft(m.body, " \t\r\n")
	if m.alone = len(start) == 0 || start[0] != '['; m.alone {
		if bytes.HasPrefix(start, []byte("null")) { // json.Unmarshal takes null for an empty object.
			return m.faultOf(&json.SemanticError{ByteOffset: int64(len(m.body) - len(start)), Err: errNull})
		}
		one := request{Cost: unstated}
		if err := json.Unmarshal(m.body, &one, json.RejectUnknownMembers(true)); err != nil {
			return m.faultOf(err)
		}
		m.add(&one)
		return nil
	}
	decoder := jsontext.NewDecoder(bytes.NewReader(m.body))
	if err := m.decodeList(decoder); err != nil {
		return m.faultOf(err)
	}
	if m.batch.Len() == 0 {
		return fmt.Errorf("the list has no request: send 1 to %d", remote.MaxRequests)
	}
	return nil
}

var errNull = errors.New("null is no request: write an object, like {\"path\": \"/\"}")

// decodeList adds the requests of a list.
func (m *message) decodeList(d *jsontext.Decoder) error {
	if _, err := d.ReadToken(); err != nil {
		return err
	}
	for d.PeekKind() != jsontext.KindEndArray {
		if m.batch.Len() == remote.MaxRequests {
			return fmt.Errorf("the list has more than %d requests: send fewer", remote.MaxRequests)
		}
		if d.PeekKind() == jsontext.KindNull {
			offset := len(m.body) - len(bytes.TrimLeft(m.body[d.InputOffset():], ", \t\r\n"))
			pointer := jsontext.Pointer("/" + strconv.Itoa(m.batch.Len()))
			return &json.SemanticError{ByteOffset: int64(offset), JSONPointer: pointer, Err: errNull}
		}
		one := request{Cost: unstated}
		if err := json.UnmarshalDecode(d, &one, json.RejectUnknownMembers(true)); err != nil {
			return err
		}
		m.add(&one)
	}
	if _, err := d.ReadToken(); err != nil {
		return err
	}
	if rest := bytes.TrimLeft(m.body[d.InputOffset():], " \t\r\n"); len(rest) > 0 {
		return &jsontext.SyntacticError{ByteOffset: int64(len(m.body) - len(rest)), Err: errors.New("there is more after the list")}
	}
	return nil
}

// unstated is the Cost of a request that does not state one.
const unstated = math.MinInt64

func (m *message) add(r *request) {
	stated := r.Cost != unstated
	if !stated {
		r.Cost = 0
	}
	m.batch.Add(&remote.Request{
		Method: r.Method, Host: r.Host, Path: r.Path, IP: r.IP, Subject: r.Subject, Domain: r.Domain,
		Headers: r.Headers, Cookies: r.Cookies, Query: r.Query, Descriptors: headgate.Descriptors(r.Descriptors),
		Cost: r.Cost, CostStated: stated, Peek: r.Peek,
	})
}

// faultOf gives an error of the decoder with its place.
func (m *message) faultOf(err error) error {
	var offset int64
	var pointer jsontext.Pointer
	var cause error
	if syntactic, found := errors.AsType[*jsontext.SyntacticError](err); found {
		offset, pointer, cause = syntactic.ByteOffset, syntactic.JSONPointer, syntactic.Err
	} else if semantic, found := errors.AsType[*json.SemanticError](err); found {
		offset, pointer, cause = semantic.ByteOffset, semantic.JSONPointer, meaning(semantic)
	} else {
		return err
	}
	before := m.body[:max(0, min(offset, int64(len(m.body))))]
	line, column := 1+bytes.Count(before, []byte{'\n'}), len(before)-bytes.LastIndexByte(before, '\n')
	if pointer == "" {
		return fmt.Errorf("line %d, column %d: %w", line, column, cause)
	}
	const most = 200
	return fmt.Errorf("line %d, column %d, at %.*q: %w", line, column, most, string(pointer), cause)
}

// meaning says in words what a value should be.
func meaning(e *json.SemanticError) error {
	switch {
	case errors.Is(e.Err, json.ErrUnknownName) && e.GoType == reflect.TypeFor[entry]():
		return errors.New("the field is not known: use key and value")
	case errors.Is(e.Err, json.ErrUnknownName):
		return errors.New("the field is not known: use method, host, path, ip, headers, cookies, query, subject, domain, descriptors, " +
			"cost " +
			"and peek")
	case e.GoType == reflect.TypeFor[int64](): // cost
		return fmt.Errorf("write a whole number without a point or an exponent, from 1 to %d", int64(headgate.MaxUnits))
	case e.Err != nil:
		return e.Err
	default:
		return fmt.Errorf("a JSON %v is no value of this field", e.JSONKind)
	}
}

// UnmarshalJSONFrom implements json.UnmarshalerFrom.
func (h *headers) UnmarshalJSONFrom(d *jsontext.Decoder) (err error) {
	*h, err = readEntries(d, remote.MaxHeaders)
	return err
}

// UnmarshalJSONFrom implements json.UnmarshalerFrom.
func (c *cookies) UnmarshalJSONFrom(d *jsontext.Decoder) (err error) {
	*c, err = readEntries(d, remote.MaxCookies)
	return err
}

// UnmarshalJSONFrom implements json.UnmarshalerFrom.
func (q *query) UnmarshalJSONFrom(d *jsontext.Decoder) (err error) {
	*q, err = readEntries(d, remote.MaxQuery)
	return err
}

// readEntries reads an object of texts. It keeps one entry more than the most, so that the request is
// refused for it, and no further ones.
func readEntries(d *jsontext.Decoder, most int) (all []headgate.DescriptorEntry, err error) {
	if d.PeekKind() != jsontext.KindBeginObject {
		return nil, skip(d, errors.New("write an object of names and texts, like {\"x-client-id\": \"a\"}"))
	}
	if _, err = d.ReadToken(); err != nil {
		return nil, err
	}
	for d.PeekKind() != jsontext.KindEndObject {
		name, err := readText(d)
		if err != nil {
			return nil, err
		}
		value, err := readText(d)
		if err != nil {
			return nil, err
		}
		if len(all) <= most {
			all = append(all, headgate.DescriptorEntry{Name: name, Value: value})
		}
	}
	_, err = d.ReadToken()
	return all, err
}

// readText reads a text.
func readText(d *jsontext.Decoder) (string, error) {
	if kind := d.PeekKind(); kind != jsontext.KindString && kind > 0 {
		return "", skip(d, errors.New("write a text in quotes"))
	}
	token, err := d.ReadToken()
	if err != nil {
		return "", err
	}
	return token.String(), nil
}

// skip gives a fault of the next value.
func skip(d *jsontext.Decoder, fault error) error {
	if d.PeekKind() == 0 {
		_, err := d.ReadToken()
		return err
	}
	return &json.SemanticError{ByteOffset: d.InputOffset(), JSONPointer: d.StackPointer(), Err: fault}
}

// UnmarshalJSONFrom implements json.UnmarshalerFrom.
func (all *descriptors) UnmarshalJSONFrom(d *jsontext.Decoder) error {
	if d.PeekKind() != jsontext.KindBeginArray {
		return skip(d, errors.New("write a list, like [{\"key\": \"tenant\", \"value\": \"a\"}]"))
	}
	if _, err := d.ReadToken(); err != nil {
		return err
	}
	for d.PeekKind() != jsontext.KindEndArray {
		var one entry
		if err := json.UnmarshalDecode(d, &one); err != nil {
			return err
		}
		if len(*all) <= remote.MaxDescriptors {
			*all = append(*all, headgate.DescriptorEntry{Name: one.Key, Value: one.Value})
		}
	}
	_, err := d.ReadToken()
	return err
}
