package memory

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"strings"
	"testing"
)

// TestStoreIsKeptAlive: each exported method that looks up the shard of a key keeps its Store
// alive on every return path. Otherwise the collector could unmap the region while the shard
// is unlocked. No test can hit that moment reliably, so this test reads the source.
func TestStoreIsKeptAlive(t *testing.T) {
	files, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	var checked []string
	for _, file := range files {
		if !strings.HasSuffix(file.Name(), ".go") || strings.HasSuffix(file.Name(), "_test.go") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file.Name(), nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, decl := range parsed.Decls {
			method, ok := decl.(*ast.FuncDecl)
			if !ok || method.Recv == nil || !method.Name.IsExported() {
				continue
			}
			from := positionOf(method, "spotOf")
			if from == token.NoPos {
				continue
			}
			checked = append(checked, method.Name.Name)
			if n := unkept(method, from); n > 0 {
				t.Errorf("%s returns %d times without runtime.KeepAlive in the same block", method.Name.Name, n)
			}
		}
	}
	if len(checked) < 4 {
		t.Errorf("only %v find a shard: does the test look for the right call?", checked)
	}
}

// positionOf gives the position of the first use of a name.
func positionOf(n ast.Node, name string) token.Pos {
	at := token.NoPos
	ast.Inspect(n, func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok && id.Name == name && at == token.NoPos {
			at = id.Pos()
		}
		return true
	})
	return at
}

// unkept counts the returns, after a position, without a KeepAlive before them in the block.
func unkept(method *ast.FuncDecl, from token.Pos) int {
	n := 0
	ast.Inspect(method, func(node ast.Node) bool {
		block, ok := node.(*ast.BlockStmt)
		if !ok {
			return true
		}
		kept := false
		for _, statement := range block.List {
			switch s := statement.(type) {
			case *ast.ExprStmt:
				kept = kept || positionOf(s, "KeepAlive") != token.NoPos
			case *ast.ReturnStmt:
				if s.Pos() > from && !kept {
					n++
				}
			}
		}
		return true
	})
	return n
}
