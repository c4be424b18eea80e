// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package perturb

import (
	"fmt"
	"strings"
)

// Kind is a kind of fault.
type Kind string

const (
	// CrashBefore ends the loop before it sends the write. The loop is restarted.
	CrashBefore Kind = "CrashBefore"
	// CrashAfter ends the loop after the write was executed and before its response.
	CrashAfter Kind = "CrashAfter"
	// LoseRequest resets the connection before the write is executed.
	LoseRequest Kind = "LoseRequest"
	// LoseReply executes the write and resets the connection.
	LoseReply Kind = "LoseReply"
	// ApplyLate responds with 504 and executes the write after one and a half times Scenario.Quiet, if its
	// preconditions still hold.
	ApplyLate Kind = "ApplyLate"

	// EditBefore lets another client edit the object Fault.Of just before the write.
	EditBefore Kind = "EditBefore"
	// DeleteBefore lets another client delete the object Fault.Of just before the write. If the object belongs to a
	// user, the user creates it again when the run has come to rest, or after ten times Scenario.Quiet.
	DeleteBefore Kind = "DeleteBefore"
	// RemakeBefore lets another client delete the object Fault.Of and create it again just before the write.
	RemakeBefore Kind = "RemakeBefore"
	// Restore stops all loops before the write, restores the server to the state before a step of the script, and
	// restarts the loops, as one should with a backup of etcd. After the run has come to rest, the users repeat the
	// steps that the restore has undone.
	Restore Kind = "Restore"
	// RestoreUnder restores the server while the loops run. No watch shows the restore: a watch that resumes at a
	// future resource version waits, as on a real server. Plans have this kind only if Options.RestoreUnder is set.
	RestoreUnder Kind = "RestoreUnder"

	// WatchLate delays this event of the watch and the later ones for ten times Scenario.Quiet, while everything else
	// continues.
	WatchLate Kind = "WatchLate"
	// WatchCut ends the watch before this event. The loop can resume the watch.
	WatchCut Kind = "WatchCut"
	// WatchGap ends the watch before this event, and lets the loop read the resource again only after ten times
	// Scenario.Quiet, when the history is gone: objects that were created and deleted in the meantime are never
	// observed.
	WatchGap Kind = "WatchGap"

	// Twice runs the loop twice at the same time, from the start. Of the Point, only the field Loop is used.
	Twice Kind = "Twice"
)

// Point is a moment of a run: the N-th time that the loop makes this write, or receives an event of this watch.
type Point struct {
	Loop        string
	Server      string
	Verb        string // create, update, patch, delete, deletecollection; watch
	Resource    string // plural, with its group: deployments.apps
	Subresource string
	Namespace   string
	Name        string // "" for a watch, and for a generated name
	N           int    // from 1
}

// String returns the point as text.
func (p Point) String() string {
	object := strings.Trim(p.Namespace+"/"+p.Name, "/")
	if p.Subresource != "" {
		object += " (" + p.Subresource + ")"
	}
	return strings.Join(strings.Fields(fmt.Sprintf("%s %s %s %s at %s #%d", p.Loop, p.Verb, p.Resource, object, p.Server, p.N)), " ")
}

// Fault is one fault of a plan.
type Fault struct {
	Kind Kind
	At   Point
	Of   Object // the object that EditBefore, DeleteBefore or RemakeBefore changes
	Step int    // Restore and RestoreUnder restore the server to its state before this step of the script, from 0
}

// Object is an object of a server.
type Object struct {
	Server, Resource, Namespace, Name string
}

// String returns the fault as text.
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

// Plan is the set of faults in one run. The empty plan is the undisturbed run.
type Plan []Fault

// String returns the plan as text.
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

// literal removes the empty fields of a struct literal.
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
