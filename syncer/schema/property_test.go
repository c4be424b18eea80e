// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package schema_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/json"
	"pgregory.net/rapid"

	"github.com/atoll-dev/atoll/syncer/schema"
)

func unmarshal(text []byte, into any) error { return json.Unmarshal(text, into) }

// party is a side, with a judge that admits objects as the server of the side does.
type party struct {
	schema.Side
	*judge
}

// parties draws n schemas of one type. API servers accept each of them.
func parties(t *rapid.T, g generator, n int) []party {
	base := g.resource()
	for installable(base) != nil {
		base = g.resource()
	}
	var out []party
	for i := range n {
		s := base
		if i > 0 || g.chance(50) {
			for range 5 {
				if v := g.variant(base, 0); installable(v) == nil {
					s = v
					break
				}
			}
		}
		j, err := newJudge(s)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, party{schema.Side{Name: string(rune('A' + i)), Schema: s}, j})
	}
	return out
}

func sides(list []party) []schema.Side {
	var out []schema.Side
	for _, p := range list {
		out = append(out, p.Side)
	}
	return out
}

// accepts checks that the server of p admits an object that another server has stored, and drops no field of it.
func accepts(p party, stored map[string]any) error {
	_, unknown, err := p.admit(stored)
	if err != nil {
		return fmt.Errorf("%s refuses it: %w", p.Name, err)
	}
	if len(unknown) > 0 {
		return fmt.Errorf("%s drops %v", p.Name, unknown)
	}
	return nil
}

func explain(list []party, n *schema.Negotiation, doc map[string]any, err error) string {
	out := err.Error() + "\n--- document\n" + show(doc)
	for _, p := range list {
		out += "--- " + p.Name + "\n" + show(p.Schema)
	}
	if n != nil {
		out += "--- result\n" + show(n.Schema)
	}
	return out
}

// API servers accept a negotiated schema. If a server with that schema admits an object, the server of each side
// admits the stored object and drops no field of it.
func TestResultIsAcceptedByEverySide(t *testing.T) {
	negotiated, admitted, documents := 0, 0, 0
	rapid.Check(t, func(t *rapid.T) {
		g := newGenerator(t)
		list := parties(t, g, g.between(2, 3))
		n, err := schema.Negotiate(sides(list)...)
		if conflict, ok := errors.AsType[*schema.ConflictError](err); ok {
			if len(conflict.Differences) == 0 {
				t.Fatal("a conflict without a difference")
			}
			return
		}
		if err != nil {
			t.Fatal(explain(list, nil, nil, err))
		}
		negotiated++
		if err := installable(n.Schema); err != nil {
			t.Fatal(explain(list, n, nil, fmt.Errorf("API servers reject the result: %w", err)))
		}
		result, err := newJudge(n.Schema)
		if err != nil {
			t.Fatal(explain(list, n, nil, err))
		}
		for range 20 {
			from := n.Schema
			if g.chance(30) {
				from = pick(g, list).Schema
			}
			doc := g.document(from)
			documents++
			stored, _, err := result.admit(doc)
			if err != nil {
				continue
			}
			admitted++
			for _, p := range list {
				if err := accepts(p, stored); err != nil {
					t.Fatal(explain(list, n, stored, err))
				}
			}
		}
	})
	t.Logf("%d negotiations, %d documents, %d admitted", negotiated, documents, admitted)
	if negotiated == 0 || admitted*10 < documents {
		t.Error("too few documents were admitted to say anything")
	}
}

// Negotiating a schema with itself returns an equal schema and no difference.
func TestIdentity(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := parties(t, newGenerator(t), 1)[0].Schema
		n, err := schema.Negotiate(schema.Side{Name: "A", Schema: s}, schema.Side{Name: "B", Schema: s.DeepCopy()})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(s, n.Schema); diff != "" || len(n.Differences) > 0 {
			t.Fatal(diff, n.Differences)
		}
	})
}

// The order of the sides does not matter: either Negotiate returns an error for both orders, or the schemas are equal
// except for descriptions.
func TestCommutative(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		list := parties(t, newGenerator(t), 3)
		a, errA := schema.Negotiate(sides(list)...)
		b, errB := schema.Negotiate(sides([]party{list[2], list[0], list[1]})...)
		if (errA == nil) != (errB == nil) {
			t.Fatal(explain(list, nil, nil, errors.Join(errA, errB)))
		}
		if errA != nil {
			return
		}
		if diff := cmp.Diff(undocumented(a.Schema), undocumented(b.Schema)); diff != "" {
			t.Fatal(explain(list, a, nil, errors.New(diff)))
		}
	})
}

// If Negotiate gets its own result and one of the sides, it returns a schema that is equivalent to the result.
func TestIdempotent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		list := parties(t, newGenerator(t), 2)
		n, err := schema.Negotiate(sides(list)...)
		if err != nil {
			return
		}
		again, err := schema.Negotiate(schema.Side{Name: "result", Schema: n.Schema}, list[0].Side)
		if err != nil {
			t.Fatal(explain(list, n, nil, err))
		}
		equivalent(t, list, n, again)
	})
}

// If three schemas are negotiated two at a time, the order does not matter: the results are equivalent. One order may
// return a conflict where another order returns a schema that accepts no object. The test leaves out defaults, rules
// and unknown fields, for which the intersection is not exact.
func TestAssociative(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := newGenerator(t)
		g.plain = true
		list := parties(t, g, 3)
		left, errL := fold(list[0], list[1], list[2])
		right, errR := fold(list[1], list[2], list[0])
		switch {
		case errL == nil && errR == nil:
			equivalent(t, list, left, right)
		case errL == nil:
			impossible(t, list, left, errR)
		case errR == nil:
			impossible(t, list, right, errL)
		}
	})
}

// impossible checks that a result rejects ten random objects.
func impossible(t *rapid.T, list []party, n *schema.Negotiation, why error) {
	g := newGenerator(t)
	j, err := newJudge(n.Schema)
	if err != nil {
		t.Fatal(explain(list, n, nil, err))
	}
	for range 10 {
		if stored, _, err := j.admit(g.document(n.Schema)); err == nil {
			t.Fatal(explain(list, n, stored, why))
		}
	}
}

// fold negotiates a and b, and then the result with c.
func fold(a, b, c party) (*schema.Negotiation, error) {
	n, err := schema.Negotiate(a.Side, b.Side)
	if err != nil {
		return nil, err
	}
	return schema.Negotiate(schema.Side{Name: "result", Schema: n.Schema}, c.Side)
}

// equivalent checks two results with random objects: if one result admits an object, the other one stores that object
// unchanged. A value that neither result accepts may be an error for one and dropped by the other.
func equivalent(t *rapid.T, list []party, a, b *schema.Negotiation) {
	g := newGenerator(t)
	ja, errA := newJudge(a.Schema)
	jb, errB := newJudge(b.Schema)
	if err := errors.Join(errA, errB); err != nil {
		t.Fatal(explain(list, a, nil, err))
	}
	for range 10 {
		doc := g.document(pick(g, []*props{a.Schema, b.Schema, list[0].Schema}))
		for _, order := range [][2]*judge{{ja, jb}, {jb, ja}} {
			stored, _, err := order[0].admit(doc)
			if err != nil {
				continue
			}
			again, _, err := order[1].admit(stored)
			if err != nil {
				t.Fatal(explain(list, a, stored, err) + "--- other\n" + show(b.Schema))
			}
			if diff := cmp.Diff(stored, again); diff != "" {
				t.Fatal(explain(list, a, stored, errors.New(diff)) + "--- other\n" + show(b.Schema))
			}
		}
	}
}

// undocumented removes descriptions, which are taken from the first side that has one.
func undocumented(s *props) *props {
	s = s.DeepCopy()
	s.Description = ""
	for name, property := range s.Properties {
		s.Properties[name] = *undocumented(&property)
	}
	if s.Items != nil && s.Items.Schema != nil {
		s.Items.Schema = undocumented(s.Items.Schema)
	}
	if s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil {
		s.AdditionalProperties.Schema = undocumented(s.AdditionalProperties.Schema)
	}
	return s
}

// If Accepts returns true, a server with the schema outer admits each object that a server with inner has stored, and
// drops no field of it.
func TestAcceptsIsCertain(t *testing.T) {
	yes := 0
	rapid.Check(t, func(t *rapid.T) {
		g := newGenerator(t)
		list := parties(t, g, 2)
		inner, outer := list[0], list[1]
		if g.chance(50) {
			if n, err := schema.Negotiate(sides(list)...); err == nil {
				j, err := newJudge(n.Schema)
				if err != nil {
					t.Fatal(err)
				}
				inner = party{schema.Side{Name: "inner", Schema: n.Schema}, j}
			}
		}
		ok, why, err := schema.Accepts(outer.Schema, inner.Schema)
		if err != nil {
			t.Fatal(err)
		}
		if !ok {
			if len(why) == 0 {
				t.Fatal(explain([]party{inner, outer}, nil, nil, errors.New("refused without a reason")))
			}
			return
		}
		yes++
		for range 20 {
			stored, _, err := inner.admit(g.document(inner.Schema))
			if err != nil {
				continue
			}
			if err := accepts(outer, stored); err != nil {
				t.Fatal(explain([]party{inner, outer}, nil, stored, err))
			}
		}
	})
	if yes == 0 {
		t.Error("nothing was ever accepted")
	}
}
