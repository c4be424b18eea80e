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

// events receives n events of w and returns the type of each, and the name and size of its object. If
// the watch ends first, the last element is "END". If the case's context ends first, the last element
// is "NOTHING MORE".
func (e *env) events(w watch.Interface, n int) []string {
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

func (e *env) event(event watch.Event) string {
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

// watch starts a watch that ends with the case.
func (e *env) watch(w dynamic.ResourceInterface, opts metav1.ListOptions) watch.Interface {
	e.Helper()
	found, err := w.Watch(e.Ctx, opts)
	require.NoError(e, err)
	e.Cleanup(found.Stop)
	return found
}

func (e *env) resize(w dynamic.ResourceInterface, name string, size int) *unstructured.Unstructured {
	e.Helper()
	o, err := w.Patch(e.Ctx, name, types.MergePatchType, fmt.Appendf(nil, `{"spec":{"size":%d}}`, size), metav1.PatchOptions{})
	require.NoError(e, err)
	return o
}

func watches() []testCase {
	return []testCase{
		{"watch-from-version", "a watch continues after the resourceVersion of a list, and can be resumed", func(e *env) {
			w := e.widgets()
			_, err := w.Create(e.Ctx, e.widget("a", map[string]any{"size": int64(1)}), metav1.CreateOptions{})
			require.NoError(e, err)
			list, err := w.List(e.Ctx, metav1.ListOptions{})
			require.NoError(e, err)
			second := e.resize(w, "a", 2)
			e.resize(w, "a", 3)
			require.NoError(e, w.Delete(e.Ctx, "a", metav1.DeleteOptions{}))
			events := e.watch(w, metav1.ListOptions{ResourceVersion: list.GetResourceVersion()})
			e.fact("all since the list", []string{"MODIFIED a 2", "MODIFIED a 3", "DELETED a 3"}, e.events(events, 3))
			events = e.watch(w, metav1.ListOptions{ResourceVersion: second.GetResourceVersion()})
			e.fact("resumed", []string{"MODIFIED a 3", "DELETED a 3"}, e.events(events, 2))
		}},
		{"watch-from-nothing", "a watch without a resourceVersion, or from 0, begins with the current objects", func(e *env) {
			w := e.widgets()
			for _, name := range []string{"a", "b"} {
				_, err := w.Create(e.Ctx, e.widget(name, nil), metav1.CreateOptions{})
				require.NoError(e, err)
			}
			e.until("the server's cache has both", func() bool {
				list, err := w.List(e.Ctx, metav1.ListOptions{ResourceVersion: "0"})
				return err == nil && len(list.Items) == 2
			})
			for what, version := range map[string]string{"unset": "", "zero": "0"} {
				events := e.watch(w, metav1.ListOptions{ResourceVersion: version})
				e.fact(what, []string{"ADDED a", "ADDED b"}, e.events(events, 2))
			}
			events := e.watch(w, metav1.ListOptions{})
			e.events(events, 2)
			e.resize(w, "b", 1)
			e.fact("then what happens", []string{"MODIFIED b 1"}, e.events(events, 1))
		}},
		{"watch-deleted-version", "the object of a DELETED event has the resourceVersion of the deletion", func(e *env) {
			w := e.widgets()
			made, err := w.Create(e.Ctx, e.widget("a", nil), metav1.CreateOptions{})
			require.NoError(e, err)
			events := e.watch(w, metav1.ListOptions{ResourceVersion: made.GetResourceVersion()})
			require.NoError(e, w.Delete(e.Ctx, "a", metav1.DeleteOptions{}))
			event := <-events.ResultChan()
			require.Equal(e, watch.Deleted, event.Type)
			gone := event.Object.(*unstructured.Unstructured)
			e.fact("another version", true, gone.GetResourceVersion() != made.GetResourceVersion())
			e.fact("uid", made.GetUID(), gone.GetUID())
			again, err := w.Create(e.Ctx, e.widget("b", nil), metav1.CreateOptions{})
			require.NoError(e, err)
			resumed := e.watch(w, metav1.ListOptions{ResourceVersion: gone.GetResourceVersion()})
			e.fact("resumable", []string{"ADDED " + again.GetName()}, e.events(resumed, 1))
		}},
		{"watch-finalizers", "marking an object is a MODIFIED event; its removal is a DELETED event", func(e *env) {
			w := e.widgets()
			o := e.widget("a", nil)
			o.SetFinalizers([]string{"example.org/x"})
			made, err := w.Create(e.Ctx, o, metav1.CreateOptions{})
			require.NoError(e, err)
			events := e.watch(w, metav1.ListOptions{ResourceVersion: made.GetResourceVersion()})
			require.NoError(e, w.Delete(e.Ctx, "a", metav1.DeleteOptions{}))
			e.release(w, "a")
			e.fact("events", []string{"MODIFIED a", "DELETED a"}, e.events(events, 2))
		}},
		{"watch-selectors", "an object enters and leaves a watch's selection", func(e *env) {
			w := e.widgets()
			list, err := w.List(e.Ctx, metav1.ListOptions{})
			require.NoError(e, err)
			events := e.watch(w, metav1.ListOptions{ResourceVersion: list.GetResourceVersion(), LabelSelector: "in=yes"})
			byField := e.watch(w, metav1.ListOptions{ResourceVersion: list.GetResourceVersion(), FieldSelector: "metadata.name=b"})
			label := func(name, value string) *unstructured.Unstructured {
				o, err := w.Patch(e.Ctx, name, types.MergePatchType, fmt.Appendf(nil, `{"metadata":{"labels":{"in":%q}}}`, value), metav1.PatchOptions{})
				require.NoError(e, err)
				return o
			}
			_, err = w.Create(e.Ctx, e.widget("a", nil), metav1.CreateOptions{})
			require.NoError(e, err)
			label("a", "yes")
			e.resize(w, "a", 1)
			left := label("a", "no")
			e.resize(w, "a", 2)
			label("a", "yes")
			require.NoError(e, w.Delete(e.Ctx, "a", metav1.DeleteOptions{}))
			_, err = w.Create(e.Ctx, e.widget("b", nil), metav1.CreateOptions{})
			require.NoError(e, err)
			e.fact("by label", []string{"ADDED a", "MODIFIED a 1"}, e.events(events, 2))
			event := <-events.ResultChan()
			e.fact("left", "DELETED a 1", e.event(event))
			gone := event.Object.(*unstructured.Unstructured)
			e.fact("as it was in the selection", "yes", gone.GetLabels()["in"])
			e.fact("at the version of the change", left.GetResourceVersion(), gone.GetResourceVersion())
			e.fact("back and gone", []string{"ADDED a 2", "DELETED a 2"}, e.events(events, 2))
			e.fact("by name", []string{"ADDED b"}, e.events(byField, 1))
		}},
		{"watch-ends", "timeoutSeconds ends a watch, and so does its context", func(e *env) {
			w := e.widgets()
			second := int64(1)
			events := e.watch(w, metav1.ListOptions{TimeoutSeconds: &second})
			e.fact("timeout", []string{"END"}, e.events(events, 1))
			ctx, cancel := context.WithCancel(e.Ctx)
			canceled, err := w.Watch(ctx, metav1.ListOptions{})
			require.NoError(e, err)
			cancel()
			for range canceled.ResultChan() { // a client may report its own broken connection as an event
			}
		}},
		{"watch-options", "invalid options of a watch", func(e *env) {
			w := e.widgets()
			yes := true
			_, err := w.Watch(e.Ctx, metav1.ListOptions{SendInitialEvents: &yes})
			e.fact("no match", `422 Invalid: ListOptions.meta.k8s.io "" is invalid: resourceVersionMatch: Forbidden: sendInitialEvents requires setting resourceVersionMatch to NotOlderThan`, e.errorText(err))
			_, err = w.Watch(e.Ctx, metav1.ListOptions{ResourceVersion: "1", ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan})
			e.fact("match alone", `422 Invalid: ListOptions.meta.k8s.io "" is invalid: resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided`, e.errorText(err))
			_, err = w.Watch(e.Ctx, metav1.ListOptions{ResourceVersion: "abc"})
			e.fact("bad version", `500 : resourceVersion: Invalid value: "abc": strconv.ParseUint: parsing "abc": invalid syntax`, e.errorText(err))
			_, err = w.Watch(e.Ctx, metav1.ListOptions{FieldSelector: "nonsense=1"})
			e.fact("bad field", "400 BadRequest", codeAndReason(err))
		}},
		{"watch-one", "a watch on one name", func(e *env) {
			w := e.widgets()
			list, err := w.List(e.Ctx, metav1.ListOptions{})
			require.NoError(e, err)
			e.some(w, "a", "b")
			events := e.watch(w, metav1.ListOptions{ResourceVersion: list.GetResourceVersion(), FieldSelector: "metadata.name=b"})
			e.fact("events", []string{"ADDED b"}, e.events(events, 1))
			reply := e.do("GET", e.path("b")+"?watch=true&timeoutSeconds=1&resourceVersion="+list.GetResourceVersion(), nil)
			e.fact("the path of one name is not watched", "Widget", reply.Body["kind"])
		}},
	}
}

func watchLists() []testCase {
	return []testCase{
		{"watch-list", "sendInitialEvents begins with the current objects and marks their end", func(e *env) {
			w := e.widgets()
			e.some(w, "a", "b")
			yes, no := true, false
			events := e.watch(w, metav1.ListOptions{SendInitialEvents: &yes, AllowWatchBookmarks: true, ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan})
			e.fact("initial events", []string{"ADDED a", "ADDED b", "BOOKMARK true"}, e.events(events, 3))
			e.some(w, "c")
			e.fact("then what happens", []string{"ADDED c"}, e.events(events, 1))
			selected := e.watch(w, metav1.ListOptions{LabelSelector: "name=b", SendInitialEvents: &yes, AllowWatchBookmarks: true, ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan})
			e.fact("selected", []string{"ADDED b", "BOOKMARK true"}, e.events(selected, 2))
			none := e.watch(w, metav1.ListOptions{SendInitialEvents: &no, ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan, ResourceVersion: ""})
			e.some(w, "d")
			e.fact("without initial events", []string{"ADDED d"}, e.events(none, 1))
		}},
		{"watch-list-empty", "the end of the initial events is sent even without any, with a resourceVersion to continue from", func(e *env) {
			w := e.widgets()
			yes := true
			events := e.watch(w, metav1.ListOptions{SendInitialEvents: &yes, AllowWatchBookmarks: true, ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan})
			event := <-events.ResultChan()
			e.fact("bookmark", "BOOKMARK true", e.event(event))
			mark := event.Object.(*unstructured.Unstructured)
			e.fact("kind", "Widget", mark.GetKind())
			e.fact("version", true, mark.GetResourceVersion() != "" && mark.GetResourceVersion() != "0")
			e.some(w, "a")
			resumed := e.watch(w, metav1.ListOptions{ResourceVersion: mark.GetResourceVersion()})
			e.fact("resumed", []string{"ADDED a"}, e.events(resumed, 1))
		}},
	}
}
