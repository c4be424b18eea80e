// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package perturb

import (
	"fmt"
	"strings"
)

// Kind is a misfortune.
type Kind string

const (
	// CrashBefore ends the loop before the write leaves it. It is started again.
	CrashBefore Kind = "CrashBefore"
	// CrashAfter ends the loop after the write was carried out, and before it learns so.
	CrashAfter Kind = "CrashAfter"
	// LoseRequest resets the connection before the write is carried out.
	LoseRequest Kind = "LoseRequest"
	// LoseReply carries the write out and resets the connection.
	LoseReply Kind = "LoseReply"
	// ApplyLate answers 504 and carries the write out after one and a half times Scenario.Quiet, if what it depends on is
	// still so.
	ApplyLate Kind = "ApplyLate"

	// EditBefore has another client edit the object just before the write.
	EditBefore Kind = "EditBefore"
	// DeleteBefore has another client delete the object just before the write. The user makes a user's object again when
	// the run has come to rest, or after ten times Scenario.Quiet.
	DeleteBefore Kind = "DeleteBefore"
	// RemakeBefore has another client delete the object and make it again just before the write.
	RemakeBefore Kind = "RemakeBefore"
	// Restore stops all loops before the write, puts the server back to the state before a step of the script, and starts
	// the loops again, as should be done with a backup of etcd. The users repeat what was lost after the run has come to
	// rest.
	Restore Kind = "Restore"
	// RestoreUnder puts the server back under running loops. No watch tells them: one that resumes at a resource version
	// that is not reached yet waits, as on a real server. It is planned only if Options.RestoreUnder is set.
	RestoreUnder Kind = "RestoreUnder"

	// WatchLate holds the watch's events back, from this one on, for ten times Scenario.Quiet, while all else goes on.
	WatchLate Kind = "WatchLate"
	// WatchCut ends the watch before this event. It can be resumed.
	WatchCut Kind = "WatchCut"
	// WatchGap ends the watch before this event, and lets the loop read the resource again only after ten times
	// Scenario.Quiet, when the history is gone: what came and went meanwhile is never seen.
	WatchGap Kind = "WatchGap"

	// Twice runs the loop twice at the same time, from the beginning. Of At, only Loop counts.
	Twice Kind = "Twice"
)

// Point is a moment of a run: the N-th time that the loop makes this very write, or gets an event of this watch.
type Point struct {
	Loop        string
	Server      string
	Verb        string // create, update, patch, delete, deletecollection; watch
	Resource    string // plural, with its group: deployments.apps
	Subresource string
	Namespace   string
	Name        string // "" for a watch, and for a name that the server chooses
	N           int    // from 1
}

// String says the point for people.
func (p Point) String() string {
	object := strings.Trim(p.Namespace+"/"+p.Name, "/")
	if p.Subresource != "" {
		object += " (" + p.Subresource + ")"
	}
	return strings.Join(strings.Fields(fmt.Sprintf("%s %s %s %s at %s #%d", p.Loop, p.Verb, p.Resource, object, p.Server, p.N)), " ")
}

// Fault is one misfortune.
type Fault struct {
	Kind Kind
	At   Point
	Of   Object // of EditBefore, DeleteBefore and RemakeBefore
	Step int    // of Restore and RestoreUnder: the server is put back to the state before this step of the script, from 0
}

// Object is an object of a server.
type Object struct {
	Server, Resource, Namespace, Name string
}

// String says the fault for people.
func (f Fault) String() string {
	switch f.Kind {
	case Twice:
		return fmt.Sprintf("%s of %s", f.Kind, f.At.Loop)
	case Restore, RestoreUnder:
		return fmt.Sprintf("%s of %s to the state before step %d, at %s", f.Kind, f.At.Server, f.Step, f.At)
	case EditBefore, DeleteBefore, RemakeBefore:
		return fmt.Sprintf("%s of %s %s at %s, at %s", f.Kind, f.Of.Resource, strings.Trim(f.Of.Namespace+"/"+f.Of.Name, "/"), f.Of.Server, f.At)
	default:
		return fmt.Sprintf("%s at %s", f.Kind, f.At)
	}
}

// Plan is what goes wrong in one run. The empty plan is the undisturbed run.
type Plan []Fault

// String says the plan for people.
func (p Plan) String() string {
	if len(p) == 0 {
		return "nothing"
	}
	faults := make([]string, len(p))
	for i, f := range p {
		faults[i] = f.String()
	}
	return strings.Join(faults, "; ")
}

// Source returns the plan as Go source.
func (p Plan) Source() string {
	var b strings.Builder
	b.WriteString("perturb.Plan{")
	for _, f := range p {
		fmt.Fprintf(&b, "\n\t{Kind: perturb.%s, At: %s", f.Kind, literal("perturb.Point", fmt.Sprintf("%#v", f.At)))
		if f.Of != (Object{}) {
			fmt.Fprintf(&b, ", Of: %s", literal("perturb.Object", fmt.Sprintf("%#v", f.Of)))
		}
		if f.Kind == Restore || f.Kind == RestoreUnder {
			fmt.Fprintf(&b, ", Step: %d", f.Step)
		}
		b.WriteString("},")
	}
	b.WriteString("\n}")
	return b.String()
}

// literal drops the fields of a struct literal that are empty.
func literal(name, source string) string {
	open := strings.Index(source, "{")
	var kept []string
	for field := range strings.SplitSeq(strings.TrimSuffix(source[open+1:], "}"), ", ") {
		if !strings.HasSuffix(field, `:""`) && field != "N:0" {
			kept = append(kept, strings.Replace(field, ":", ": ", 1))
		}
	}
	return name + "{" + strings.Join(kept, ", ") + "}"
}
