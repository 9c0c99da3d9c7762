package rule

import (
	"fmt"
	"slices"
	"strings"

	"github.com/headgate/headgate"
)

// MaxParts limits the parts of one key. A longer key is hard to understand, and every
// part multiplies the number of keys.
const MaxParts = 3

// Part is one part of a key: a value of the request by which clients are counted
// separately. ParsePart returns a Part. Parts can be compared with ==, unless they are bound: see Rule.BoundKey.
type Part struct {
	kind partKind
	// v4 and v6 are the prefix lengths of an address with networks of its own. Other addresses have usualV4 and usualV6.
	v4, v6 uint8
	// name is that of a header (in canonical spelling), a cookie, a claim, a descriptor entry, a query, a path of a body, or of a
	// variable without braces.
	name string
	from *capture // of a variable, after BoundKey
}

// partKind is the kind of a part. Keys contain these numbers and stores keep the keys,
// so a number must never change its meaning.
type partKind uint8

const (
	partNone partKind = iota // the kind of the zero Part
	partAll
	partIP
	partPath
	partMethod
	partHost
	partHeader
	partCookie
	partXFFIP
	partUserIP
	partRegion
	partSubject
	partClaim
	partDescriptor
	// partCustomer is only in keys of customers. A configuration cannot write it.
	partCustomer
	// The parts ip, xff_ip and user_ip with networks of their own.
	partIPNet
	partXFFNet
	partUserNet
	// The parts path:{NAME} and host:{NAME}, and query:NAME.
	partPathName
	partHostName
	partQuery
	// The parts model and json:FIELD, of the body.
	partModel
	partJSON
)

// partForm describes a kind of part. partTable has all of them: words, patterns of the schema, faults and documents come from
// the table. Only Part.lookup and Part.address have another case for each kind, because they decide each request.
type partForm struct {
	word string
	// name stands for the name in documents, and example is one; both are "" for a part without a name. A name of a variable has braces.
	name, example string
	// printable allows each printable character in a name. Otherwise a name is a token.
	printable bool
	// network is the kind of an address with networks of its own, such as ip/24; partNone for other parts.
	network partKind
	// needs is what a front or an Identity must find, and supply is what not every front can give.
	needs  Needs
	supply Supply
	// meaning is the text of documents.
	meaning string
}

// partTable has the forms. partNone has none.
var partTable = [...]partForm{
	partAll: {word: "all", meaning: "one key for all requests; must be the only part"},
	partIP: {
		word: "ip", network: partIPNet, needs: NeedIP, meaning: "the address of the connection's peer; an IPv6 address counts by its /64",
	},
	partPath:   {word: "path", meaning: "path of the request"},
	partMethod: {word: "method", meaning: "method of the request"},
	partHost:   {word: "host", needs: NeedHost, meaning: "host of the request"},
	partHeader: {word: "header", name: "NAME", example: "X-Client-Id", supply: SupplyHeaders, meaning: "value of a header"},
	partCookie: {word: "cookie", name: "NAME", example: "session", supply: SupplyCookies, meaning: "value of a cookie"},
	partXFFIP: {
		word: "xff_ip", network: partXFFNet, needs: NeedXFFIP | NeedIP,
		meaning: "the last address in X-Forwarded-For that is not in `identity.trusted_proxies`",
	},
	partUserIP: {
		word: "user_ip", network: partUserNet, needs: NeedUserIP | NeedIP,
		meaning: "the address in one of `identity.user_ip_headers`, from a trusted proxy",
	},
	partRegion: {
		word: "region", needs: NeedRegion | NeedIP,
		meaning: "the country of the address, by `identity.region_db`: `NL`",
	},
	partSubject: {word: "mtls_subject", needs: NeedSubject, supply: SupplySubjects, meaning: "subject of the client's certificate"},
	partClaim: {
		word: "jwt", name: "CLAIM", example: "sub", printable: true, needs: NeedClaims,
		meaning: "claim of the bearer token, verified by `identity.jwt`",
	},
	partDescriptor: {
		word: "descriptor", name: "NAME", example: "tenant", printable: true, supply: SupplyDescriptors,
		meaning: "value of a descriptor in a query to a decision server",
	},
	partCustomer: {word: "customer"},
	partIPNet:    {word: "ip", needs: NeedIP},
	partXFFNet:   {word: "xff_ip", needs: NeedXFFIP | NeedIP},
	partUserNet:  {word: "user_ip", needs: NeedUserIP | NeedIP},
	partPathName: {
		word: "path", name: "{NAME}", example: "{id}",
		meaning: "what `{NAME}` in `match.path` stands for: the segment of `/users/{id}`",
	},
	partHostName: {
		word: "host", name: "{NAME}", example: "{tenant}", needs: NeedHost,
		meaning: "what `{NAME}` stands for in `match.hosts`: the label of `{tenant}.example.com`",
	},
	partQuery: {
		word: "query", name: "NAME", example: "user", printable: true, supply: SupplyQueries,
		meaning: "value of the query of the URL, decoded",
	},
	partModel: {
		word: "model", supply: SupplyBodies,
		meaning: "model that the JSON body names, or the path in the APIs of Gemini and Bedrock",
	},
	partJSON: {
		word: "json", name: "FIELD", example: "params.name", printable: true, supply: SupplyBodies,
		meaning: "string, number or boolean of the JSON body, by its path",
	},
}

// partOrderTable is the order of documents. The numbers of the kinds have another one.
var partOrderTable = [...]partKind{
	partAll, partIP, partXFFIP, partUserIP, partRegion, partPath, partPathName, partMethod, partHost, partHostName,
	partHeader, partCookie, partQuery, partModel, partJSON, partSubject, partClaim, partDescriptor,
}

// partSynonymsTable has the names of the parts in other products.
var partSynonymsTable = map[string]partKind{
	"client_ip": partIP, "remote_ip": partIP, "remote_addr": partIP, "remote_address": partIP,
	"x_forwarded_for": partXFFIP, "forwarded_for": partXFFIP,
}

// PartForm is one form of a key part in a configuration.
type PartForm struct {
	// Text is the form, such as ip or header:NAME. Word is the word before the colon or the slash.
	Text, Word string
	// Pattern is a regular expression, in the syntax of Go and of ECMAScript, for all texts of the form.
	Pattern string
	// Meaning says in Markdown which value of a request the part is.
	Meaning string
}

// PartForms lists the forms of key parts in the order of the documents.
func PartForms() []PartForm {
	forms := make([]PartForm, 0, len(partOrderTable)+1)
	for _, kind := range partOrderTable {
		f := &partTable[kind]
		form := PartForm{Text: f.word, Word: f.word, Pattern: f.word, Meaning: f.meaning}
		switch {
		case kind.isVariable():
			form.Text, form.Pattern = f.word+":"+f.name, f.word+`:\{.+\}`
		case f.name != "":
			form.Text, form.Pattern = f.word+":"+f.name, f.word+":.+"
		}
		if forms = append(forms, form); kind == partUserIP {
			forms = append(forms, networkForm())
		}
	}
	return forms
}

// knownParts lists the forms for a fault.
func knownParts() string {
	var texts []string
	for _, f := range PartForms() {
		texts = append(texts, f.Text)
	}
	return strings.Join(texts, ", ")
}

// ParsePart parses a key part of the configuration: one of PartForms. The name starts after the first colon, so a claim may be a URL. The
// error is a *ParseError.
func ParsePart(text string) (Part, error) {
	word, name, colon := strings.Cut(text, ":")
	if address, _, found := strings.Cut(word, "/"); found && partTable[partKindOf(address)].network != partNone {
		return parseNetwork(partKindOf(address), text)
	}
	kind := partKindOf(word)
	switch {
	case kind == partNone:
		return Part{}, unknownPart(text, word)
	case colon && (kind == partPath || kind == partHost):
		return parseVariable(kind, name)
	case kind.named():
		return parseNamed(kind, name)
	case colon:
		return Part{}, &ParseError{
			Problem: "key part " + word + " takes no name", Fix: "write " + word, Offset: len(word),
		}
	default:
		return Part{kind: kind}, nil
	}
}

func partKindOf(word string) partKind {
	for _, kind := range partOrderTable {
		if partTable[kind].word == word {
			return kind
		}
	}
	return partNone
}

func unknownPart(text, word string) error {
	fix := "use one of " + knownParts()
	if kind, known := partSynonymsTable[word]; known {
		usual := partTable[kind].word
		return &ParseError{Problem: "key part " + quote(text) + " is called " + usual + " here", Fix: "write " + usual}
	}
	var words []string
	for _, kind := range partOrderTable {
		words = append(words, partTable[kind].word)
	}
	if near := Nearest(word, words); near != "" {
		fix = "did you mean " + near + "? " + fix
	}
	return &ParseError{Problem: "key part " + quote(text) + " is not known", Fix: fix}
}

// isVariable reports whether parts of the kind have the name of a variable of the match.
func (k partKind) isVariable() bool { return k == partPathName || k == partHostName }

// named reports whether parts of the kind have a name, which is then part of the key.
func (k partKind) named() bool { return int(k) < len(partTable) && partTable[k].name != "" }

// OfMatch reports whether the part is path:{NAME} or host:{NAME}, which needs the name in the match of its rule.
func (p Part) OfMatch() bool { return p.kind.isVariable() }

// Needs returns the values that the part reads.
func (p Part) Needs() Needs { return partTable[p.kind].needs }

// Supply returns what the part needs from a front. 0 means that every front gives it.
func (p Part) Supply() Supply { return partTable[p.kind].supply }

// Name returns the name of a header (in canonical spelling), a cookie, a query, a claim or a descriptor, that of a variable without
// braces, and "" for other parts.
func (p Part) Name() string { return p.name }

// Text returns the value of a part that is a text in the request, such as a header or a claim. It reports false for other parts, and
// for a request without a value.
func (p Part) Text(req *headgate.Request) (text string, ok bool) { return p.lookup(req) }

// Word returns the word of the part's form, without its name or the lengths of its networks.
func (p Part) Word() string {
	if p.kind == partNone || int(p.kind) >= len(partTable) {
		return "none"
	}
	return partTable[p.kind].word
}

// String returns the part in the form of the configuration.
func (p Part) String() string {
	if p.name == "" && p.v4 == 0 && p.kind != partNone && int(p.kind) < len(partTable) {
		return partTable[p.kind].word // This return allocates nothing.
	}
	return string(p.appendTo(nil))
}

// CheckKey checks the parts of one key together. A key has one to three parts without
// duplicates. The part all must be alone. The error is a *KeyError.
func CheckKey(parts []Part) error {
	switch {
	case len(parts) == 0:
		return &KeyError{0, "has no part", "write what identifies a client, like ip or header:X-Client-Id; all counts all clients together"}
	case len(parts) > MaxParts:
		return &KeyError{MaxParts, fmt.Sprintf("has %d parts", len(parts)), fmt.Sprintf("use at most %d", MaxParts)}
	}
	for i, p := range parts {
		switch {
		case p.kind == partNone:
			return &KeyError{i, "has an empty part", "use ParsePart"}
		case p.kind == partAll && len(parts) > 1:
			return &KeyError{i, "has all together with other parts", "remove all, because the other parts identify the client"}
		case slices.ContainsFunc(parts[:i], func(former Part) bool { return former.unbound() == p.unbound() }):
			return &KeyError{i, "has " + p.String() + " twice", "remove one of them"}
		}
	}
	return nil
}

// Verified reports whether the part is a claim of a verified token or the subject of a
// verified certificate. Clients cannot invent such values.
func (p Part) Verified() bool { return p.kind == partClaim || p.kind == partSubject }
