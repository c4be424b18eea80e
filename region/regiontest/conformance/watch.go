// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"context"
	"fmt"
	"strings"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
)

// Events receives n events of a watch and returns type, name and size of each.
func (e *Env) Events(w watch.Interface, n int) []string {
	e.Helper()
	found := []string{}
	for len(found) < n {
		select {
		case event, open := <-w.ResultChan():
			if !open {
				return append(found, "END")
			}
			found = append(found, e.event(event))
		case <-e.Ctx.Done():
			return append(found, "NOTHING MORE")
		}
	}
	return found
}

func (e *Env) event(event watch.Event) string {
	o, ok := event.Object.(*unstructured.Unstructured)
	if !ok {
		return fmt.Sprintf("%s %T", event.Type, event.Object)
	}
	switch event.Type {
	case watch.Error:
		return e.plain(fmt.Sprintf("ERROR %v %s", o.Object["code"], o.Object["reason"]))
	case watch.Bookmark:
		return strings.TrimSpace("BOOKMARK " + o.GetAnnotations()[metav1.InitialEventsAnnotationKey])
	}
	if size := field(o, "spec", "size"); size != nil {
		return fmt.Sprintf("%s %s %v", event.Type, o.GetName(), size)
	}
	return fmt.Sprintf("%s %s", event.Type, o.GetName())
}

// Watch starts a watch that ends with the case.
func (e *Env) Watch(w dynamic.ResourceInterface, opts metav1.ListOptions) watch.Interface {
	e.Helper()
	found, err := w.Watch(e.Ctx, opts)
	require.NoError(e, err)
	e.Cleanup(found.Stop)
	return found
}

func (e *Env) resize(w dynamic.ResourceInterface, name string, size int) *unstructured.Unstructured {
	e.Helper()
	o, err := w.Patch(e.Ctx, name, types.MergePatchType, fmt.Appendf(nil, `{"spec":{"size":%d}}`, size), metav1.PatchOptions{})
	require.NoError(e, err)
	return o
}

func watches() []Case {
	return []Case{
		{"watch-from-version", "a watch continues after the resourceVersion of a list, and can be resumed", func(e *Env) {
			w := e.Widgets()
			_, err := w.Create(e.Ctx, e.Widget("a", map[string]any{"size": int64(1)}), metav1.CreateOptions{})
			require.NoError(e, err)
			list, err := w.List(e.Ctx, metav1.ListOptions{})
			require.NoError(e, err)
			second := e.resize(w, "a", 2)
			e.resize(w, "a", 3)
			require.NoError(e, w.Delete(e.Ctx, "a", metav1.DeleteOptions{}))
			events := e.Watch(w, metav1.ListOptions{ResourceVersion: list.GetResourceVersion()})
			e.Fact("all since the list", []string{"MODIFIED a 2", "MODIFIED a 3", "DELETED a 3"}, e.Events(events, 3))
			events = e.Watch(w, metav1.ListOptions{ResourceVersion: second.GetResourceVersion()})
			e.Fact("resumed", []string{"MODIFIED a 3", "DELETED a 3"}, e.Events(events, 2))
		}},
		{"watch-from-nothing", "a watch without a resourceVersion, or from 0, begins with the current objects", func(e *Env) {
			w := e.Widgets()
			for _, name := range []string{"a", "b"} {
				_, err := w.Create(e.Ctx, e.Widget(name, nil), metav1.CreateOptions{})
				require.NoError(e, err)
			}
			e.Until("the server's cache has both", func() bool {
				list, err := w.List(e.Ctx, metav1.ListOptions{ResourceVersion: "0"})
				return err == nil && len(list.Items) == 2
			})
			for what, version := range map[string]string{"unset": "", "zero": "0"} {
				events := e.Watch(w, metav1.ListOptions{ResourceVersion: version})
				e.Fact(what, []string{"ADDED a", "ADDED b"}, e.Events(events, 2))
			}
			events := e.Watch(w, metav1.ListOptions{})
			e.Events(events, 2)
			e.resize(w, "b", 1)
			e.Fact("then what happens", []string{"MODIFIED b 1"}, e.Events(events, 1))
		}},
		{"watch-deleted-version", "the object of a DELETED event has the resourceVersion of the deletion", func(e *Env) {
			w := e.Widgets()
			made, err := w.Create(e.Ctx, e.Widget("a", nil), metav1.CreateOptions{})
			require.NoError(e, err)
			events := e.Watch(w, metav1.ListOptions{ResourceVersion: made.GetResourceVersion()})
			require.NoError(e, w.Delete(e.Ctx, "a", metav1.DeleteOptions{}))
			event := <-events.ResultChan()
			require.Equal(e, watch.Deleted, event.Type)
			gone := event.Object.(*unstructured.Unstructured)
			e.Fact("another version", true, gone.GetResourceVersion() != made.GetResourceVersion())
			e.Fact("uid", made.GetUID(), gone.GetUID())
			again, err := w.Create(e.Ctx, e.Widget("b", nil), metav1.CreateOptions{})
			require.NoError(e, err)
			resumed := e.Watch(w, metav1.ListOptions{ResourceVersion: gone.GetResourceVersion()})
			e.Fact("resumable", []string{"ADDED " + again.GetName()}, e.Events(resumed, 1))
		}},
		{"watch-finalizers", "marking an object is a MODIFIED event; its removal is a DELETED event", func(e *Env) {
			w := e.Widgets()
			o := e.Widget("a", nil)
			o.SetFinalizers([]string{"example.org/x"})
			made, err := w.Create(e.Ctx, o, metav1.CreateOptions{})
			require.NoError(e, err)
			events := e.Watch(w, metav1.ListOptions{ResourceVersion: made.GetResourceVersion()})
			require.NoError(e, w.Delete(e.Ctx, "a", metav1.DeleteOptions{}))
			e.Release(w, "a")
			e.Fact("events", []string{"MODIFIED a", "DELETED a"}, e.Events(events, 2))
		}},
		{"watch-selectors", "an object enters and leaves a watch's selection", func(e *Env) {
			w := e.Widgets()
			list, err := w.List(e.Ctx, metav1.ListOptions{})
			require.NoError(e, err)
			events := e.Watch(w, metav1.ListOptions{ResourceVersion: list.GetResourceVersion(), LabelSelector: "in=yes"})
			byField := e.Watch(w, metav1.ListOptions{ResourceVersion: list.GetResourceVersion(), FieldSelector: "metadata.name=b"})
			label := func(name, value string) *unstructured.Unstructured {
				o, err := w.Patch(e.Ctx, name, types.MergePatchType, fmt.Appendf(nil, `{"metadata":{"labels":{"in":%q}}}`, value), metav1.PatchOptions{})
				require.NoError(e, err)
				return o
			}
			_, err = w.Create(e.Ctx, e.Widget("a", nil), metav1.CreateOptions{})
			require.NoError(e, err)
			label("a", "yes")
			e.resize(w, "a", 1)
			left := label("a", "no")
			e.resize(w, "a", 2)
			label("a", "yes")
			require.NoError(e, w.Delete(e.Ctx, "a", metav1.DeleteOptions{}))
			_, err = w.Create(e.Ctx, e.Widget("b", nil), metav1.CreateOptions{})
			require.NoError(e, err)
			e.Fact("by label", []string{"ADDED a", "MODIFIED a 1"}, e.Events(events, 2))
			event := <-events.ResultChan()
			e.Fact("left", "DELETED a 1", e.event(event))
			gone := event.Object.(*unstructured.Unstructured)
			e.Fact("as it was in the selection", "yes", gone.GetLabels()["in"])
			e.Fact("at the version of the change", left.GetResourceVersion(), gone.GetResourceVersion())
			e.Fact("back and gone", []string{"ADDED a 2", "DELETED a 2"}, e.Events(events, 2))
			e.Fact("by name", []string{"ADDED b"}, e.Events(byField, 1))
		}},
		{"watch-ends", "timeoutSeconds ends a watch, and so does its context", func(e *Env) {
			w := e.Widgets()
			second := int64(1)
			events := e.Watch(w, metav1.ListOptions{TimeoutSeconds: &second})
			e.Fact("timeout", []string{"END"}, e.Events(events, 1))
			ctx, cancel := context.WithCancel(e.Ctx)
			canceled, err := w.Watch(ctx, metav1.ListOptions{})
			require.NoError(e, err)
			cancel()
			for range canceled.ResultChan() { // a client may report its own broken connection as an event
			}
		}},
		{"watch-options", "invalid options of a watch", func(e *Env) {
			w := e.Widgets()
			yes := true
			_, err := w.Watch(e.Ctx, metav1.ListOptions{SendInitialEvents: &yes})
			e.Fact("no match", `422 Invalid: ListOptions.meta.k8s.io "" is invalid: resourceVersionMatch: Forbidden: sendInitialEvents requires setting resourceVersionMatch to NotOlderThan`, e.Said(err))
			_, err = w.Watch(e.Ctx, metav1.ListOptions{ResourceVersion: "1", ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan})
			e.Fact("match alone", `422 Invalid: ListOptions.meta.k8s.io "" is invalid: resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided`, e.Said(err))
			_, err = w.Watch(e.Ctx, metav1.ListOptions{ResourceVersion: "abc"})
			e.Fact("bad version", `500 : resourceVersion: Invalid value: "abc": strconv.ParseUint: parsing "abc": invalid syntax`, e.Said(err))
			_, err = w.Watch(e.Ctx, metav1.ListOptions{FieldSelector: "nonsense=1"})
			e.Fact("bad field", "400 BadRequest", codeAndReason(err))
		}},
		{"watch-one", "a watch on one name", func(e *Env) {
			w := e.Widgets()
			list, err := w.List(e.Ctx, metav1.ListOptions{})
			require.NoError(e, err)
			e.some(w, "a", "b")
			events := e.Watch(w, metav1.ListOptions{ResourceVersion: list.GetResourceVersion(), FieldSelector: "metadata.name=b"})
			e.Fact("events", []string{"ADDED b"}, e.Events(events, 1))
			reply := e.Do("GET", e.Path("b")+"?watch=true&timeoutSeconds=1&resourceVersion="+list.GetResourceVersion(), nil)
			e.Fact("the path of one name is not watched", "Widget", reply.Body["kind"])
		}},
	}
}

func watchLists() []Case {
	return []Case{
		{"watch-list", "sendInitialEvents begins with the current objects and marks their end", func(e *Env) {
			w := e.Widgets()
			e.some(w, "a", "b")
			yes, no := true, false
			events := e.Watch(w, metav1.ListOptions{SendInitialEvents: &yes, AllowWatchBookmarks: true, ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan})
			e.Fact("initial events", []string{"ADDED a", "ADDED b", "BOOKMARK true"}, e.Events(events, 3))
			e.some(w, "c")
			e.Fact("then what happens", []string{"ADDED c"}, e.Events(events, 1))
			selected := e.Watch(w, metav1.ListOptions{LabelSelector: "name=b", SendInitialEvents: &yes, AllowWatchBookmarks: true, ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan})
			e.Fact("selected", []string{"ADDED b", "BOOKMARK true"}, e.Events(selected, 2))
			none := e.Watch(w, metav1.ListOptions{SendInitialEvents: &no, ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan, ResourceVersion: ""})
			e.some(w, "d")
			e.Fact("without initial events", []string{"ADDED d"}, e.Events(none, 1))
		}},
		{"watch-list-empty", "the end of the initial events is sent even without any, with a resourceVersion to continue from", func(e *Env) {
			w := e.Widgets()
			yes := true
			events := e.Watch(w, metav1.ListOptions{SendInitialEvents: &yes, AllowWatchBookmarks: true, ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan})
			event := <-events.ResultChan()
			e.Fact("bookmark", "BOOKMARK true", e.event(event))
			mark := event.Object.(*unstructured.Unstructured)
			e.Fact("kind", "Widget", mark.GetKind())
			e.Fact("version", true, mark.GetResourceVersion() != "" && mark.GetResourceVersion() != "0")
			e.some(w, "a")
			resumed := e.Watch(w, metav1.ListOptions{ResourceVersion: mark.GetResourceVersion()})
			e.Fact("resumed", []string{"ADDED a"}, e.Events(resumed, 1))
		}},
	}
}
