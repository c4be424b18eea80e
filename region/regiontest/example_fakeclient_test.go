// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package regiontest_test

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic/fake"

	"github.com/atoll-dev/atoll/region"
)

// Client-go's fake dynamic client works as a region.API in one line, which is enough for code that only reads and
// creates. It is not enough with two writers: it sets no UID and no resourceVersion, so it accepts an update although
// the object has changed since the client read it, deletes an object despite finalizers, and ignores preconditions.
// It also has no HTTP: no impersonation, no lost responses, no status codes. So tests with this fake may pass
// although the protocol of the tested code is wrong. To test a protocol, use NewServer.
func ExampleNewServer_withClientGoFake() {
	client := fake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), map[schema.GroupVersionResource]string{widgets: "WidgetList"})
	api := region.APIOf(client, nil, nil)
	w := api.Dynamic().Resource(widgets).Namespace("default")
	ctx := context.Background()

	held := widget("a", 1)
	held.SetFinalizers([]string{"example.org/hold"})
	mine, err := w.Create(ctx, held, metav1.CreateOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("uid %q, resourceVersion %q\n", mine.GetUID(), mine.GetResourceVersion())

	theirs := mine.DeepCopy()
	theirs.SetLabels(map[string]string{"touched": "yes"})
	_, err = w.Update(ctx, theirs, metav1.UpdateOptions{})
	fmt.Println("their update:", err)
	lost, err := w.Update(ctx, mine, metav1.UpdateOptions{})
	fmt.Println("my stale update:", err, "and their label is", lost.GetLabels())

	fmt.Println("delete:", w.Delete(ctx, "a", metav1.DeleteOptions{}))
	_, err = w.Get(ctx, "a", metav1.GetOptions{})
	fmt.Println("in spite of its finalizer:", err)
	// Output:
	// uid "", resourceVersion ""
	// their update: <nil>
	// my stale update: <nil> and their label is map[]
	// delete: <nil>
	// in spite of its finalizer: widgets.example.org "a" not found
}
