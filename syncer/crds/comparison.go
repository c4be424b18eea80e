// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package crds

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/atoll-dev/atoll/syncer/schema"
)

// comparison is one pass over all types on all sides, with the states that it finds.
type comparison struct {
	opts    Options
	up      *side
	targets []*side
	states  []State
}

func (p *comparison) add(s State) { p.states = append(p.states, s) }

// run reconciles the types one after the other. A failure of one does not stop the next.
func (p *comparison) run(ctx context.Context) {
	for _, s := range append([]*side{p.up}, p.targets...) {
		if s.err != nil {
			p.add(State{Side: s.name, Reason: Unknown, Message: s.err.Error()})
		}
	}
	if p.up.err != nil {
		return
	}
	for _, gr := range p.types() {
		if ctx.Err() != nil {
			return
		}
		rule := p.opts.Policy.rule(gr)
		if rule.pulls() {
			p.pull(ctx, gr, rule)
		}
		if rule.pushes() {
			p.push(ctx, gr, rule)
		}
	}
}

// types returns all types that some side serves or defines.
func (p *comparison) types() []runtimeschema.GroupResource {
	found := map[runtimeschema.GroupResource]bool{}
	for _, s := range append([]*side{p.up}, p.targets...) {
		for _, crd := range s.crds {
			found[runtimeschema.GroupResource{Group: crd.Spec.Group, Resource: crd.Spec.Names.Plural}] = true
		}
		for gr := range s.served {
			found[gr] = true
		}
	}
	return slices.SortedFunc(maps.Keys(found), func(a, b runtimeschema.GroupResource) int {
		return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Resource, b.Resource))
	})
}

// sources returns the definitions of a type in all targets that serve or define it, except definitions that this
// package pushed or that are being deleted. known is false if a target did not answer, or if there are no targets.
func (p *comparison) sources(gr runtimeschema.GroupResource) ([]source, bool, error) {
	var out []source
	known := len(p.targets) > 0 // without targets, it is unknown whether any has the type
	for _, t := range p.targets {
		if !t.knows(gr.Group) {
			known = false
			continue
		}
		crd := t.crds[gr.String()]
		if _, serves := t.served[gr]; !serves && crd == nil || isManaged(crd, pushed) {
			continue
		}
		if crd != nil && !crd.DeletionTimestamp.IsZero() {
			continue
		}
		found, err := t.definition(gr)
		if err != nil {
			return nil, known, err
		}
		out = append(out, source{t.name, found})
	}
	return out, known, nil
}

// pull defines one type upstream if targets serve it. If no target serves the type any longer, pull treats the pulled
// definition as an orphan.
func (p *comparison) pull(ctx context.Context, gr runtimeschema.GroupResource, rule Rule) {
	present := p.up.crds[gr.String()]
	state := State{Type: gr, Side: Upstream}
	if _, serves := p.up.served[gr]; serves && present == nil {
		state.Reason = Served
		if !p.anyServes(gr) {
			return
		}
		p.add(state)
		return
	}
	ours := isManaged(present, pulled)
	sources, known, err := p.sources(gr)
	switch {
	case err != nil:
		state.Reason, state.Message = Unreadable, err.Error()
		p.add(state)
		return
	case len(sources) == 0 && !ours:
		return
	case len(sources) == 0:
		p.add(p.orphan(ctx, p.up, present, rule, known))
		return
	}
	for _, s := range sources {
		state.From = append(state.From, s.side)
	}
	if present != nil && !ours {
		p.add(compare(state, present, sources))
		return
	}
	// A target that did not answer may depend on the present definition: the new one must not accept more objects.
	bound := !known && present != nil
	if bound {
		sources = append(sources, source{Upstream, portable(present)})
	}
	wanted, differences, err := agree(sources)
	state.Differences = differences
	if err != nil {
		state.Reason, state.Message = Incompatible, err.Error()
		p.add(state)
		return
	}
	mark(wanted, pulled, state.From)
	if bound {
		wanted.Annotations[SourcesAnnotation] = present.Annotations[SourcesAnnotation]
	}
	p.add(p.define(ctx, p.up, state, present, wanted))
}

// isManaged reports whether this package created a definition in the way that how names: pulled or pushed.
func isManaged(crd *apiextensionsv1.CustomResourceDefinition, how string) bool {
	return crd != nil && crd.Labels[ManagedLabel] == how
}

func (p *comparison) anyServes(gr runtimeschema.GroupResource) bool {
	return slices.ContainsFunc(p.targets, func(t *side) bool { _, ok := t.served[gr]; return ok && t.err == nil })
}

// push defines one type in the targets if it is defined upstream. Otherwise it treats each definition that it pushed
// before as an orphan. It pushes a pulled definition only in the direction Both.
func (p *comparison) push(ctx context.Context, gr runtimeschema.GroupResource, rule Rule) {
	origin := p.up.crds[gr.String()]
	if origin != nil && (!origin.DeletionTimestamp.IsZero() || isManaged(origin, pulled) && rule.Direction != Both) {
		return
	}
	for _, t := range p.targets {
		if origin == nil {
			p.withdraw(ctx, gr, rule, t)
		} else {
			p.pushTo(ctx, gr, origin, t)
		}
	}
}

// withdraw treats a target's definition of a type as an orphan if this package pushed it. The type is not defined
// upstream.
func (p *comparison) withdraw(ctx context.Context, gr runtimeschema.GroupResource, rule Rule, t *side) {
	present := t.crds[gr.String()]
	if t.knows(gr.Group) && isManaged(present, pushed) {
		p.add(p.orphan(ctx, t, present, rule, p.up.knows(gr.Group)))
	}
}

// pushTo defines in one target a type that is defined upstream.
func (p *comparison) pushTo(
	ctx context.Context, gr runtimeschema.GroupResource, origin *apiextensionsv1.CustomResourceDefinition, t *side,
) {
	state := State{Type: gr, Side: t.name}
	present := t.crds[gr.String()]
	_, serves := t.served[gr]
	switch {
	case t.err != nil:
		return // reported for the target as a whole
	case !t.knows(gr.Group):
		state.Reason, state.Message = Unknown, "the group did not answer"
		p.add(state)
		return
	case serves && present == nil:
		state.Reason = Served
		p.add(state)
		return
	}
	from := source{Upstream, portable(origin)}
	state.From = []string{Upstream}
	if present != nil && !isManaged(present, pushed) {
		// If the upstream definition was pulled, pull has already compared it with the definitions of the targets.
		if !isManaged(origin, pulled) {
			p.add(compare(state, present, []source{from}))
		}
		return
	}
	wanted, _, err := agree([]source{from})
	if err != nil {
		state.Reason, state.Message = Incompatible, err.Error()
		p.add(state)
		return
	}
	mark(wanted, pushed, state.From)
	p.add(p.define(ctx, t, state, present, wanted))
}

// compare completes the state of present, a definition that this package did not create. The state reports how present
// differs from the definitions of the other sides, and whether all sides accept every object of present.
func compare(state State, present *apiextensionsv1.CustomResourceDefinition, sources []source) State {
	state.Reason = Foreign
	agreed, differences, err := agree(append([]source{{state.Side, portable(present)}}, sources...))
	state.Differences = differences
	switch {
	case err != nil:
		state.Message = err.Error()
		if conflict := (*schema.ConflictError)(nil); errors.As(err, &conflict) || errors.Is(err, errNoVersion) {
			state.Reason = Incompatible
		}
	default:
		if why, _ := narrows(present, agreed); why != "" {
			state.Message = fmt.Sprintf("not all sides accept every object of the definition: for that, %s", why)
		}
	}
	return state
}
