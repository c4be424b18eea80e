// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package regiontest_test

import (
	"context"
	"fmt"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"

	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/region/regiontest"
)

// A client creates an object, and another client updates it. The server rejects
// an update by the first client, whose copy is stale.
func ExampleNewServer() {
	server := regiontest.NewServer(regiontest.Options{CRDs: []*apiextensionsv1.CustomResourceDefinition{widgetCRD()}})
	defer server.Close()
	client, err := dynamic.NewForConfig(server.Config())
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx := context.Background()
	w := client.Resource(widgets).Namespace("default")
	mine, err := w.Create(ctx, widget("a", 1), metav1.CreateOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	theirs := mine.DeepCopy()
	theirs.SetLabels(map[string]string{"touched": "yes"})
	_, err = w.Update(ctx, theirs, metav1.UpdateOptions{})
	fmt.Println("theirs:", err)
	_, err = w.Update(ctx, mine, metav1.UpdateOptions{})
	fmt.Println("mine is a conflict:", apierrors.IsConflict(err))
	_, err = w.Create(ctx, widget("b", -1), metav1.CreateOptions{FieldValidation: "Strict"})
	fmt.Println("another:", err)
	// Output:
	// theirs: <nil>
	// mine is a conflict: true
	// another: <nil>
}

// A create whose response is lost has still taken effect.
func ExampleServer_Inject() {
	server := regiontest.NewServer(regiontest.Options{})
	defer server.Close()
	client, err := dynamic.NewForConfig(server.Config())
	if err != nil {
		fmt.Println(err)
		return
	}
	server.Inject(regiontest.Fault{Verb: "create", Resource: namespaces.GroupResource(), Do: regiontest.DropReply()})
	ns := widget("acme", 0)
	ns.Object = map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": "acme"}}
	for range 2 {
		_, err = client.Resource(namespaces).Create(context.Background(), ns, metav1.CreateOptions{})
		fmt.Println(apierrors.IsAlreadyExists(err), err != nil)
	}
	for _, r := range server.Requests() {
		fmt.Println(r.Verb, r.Resource, r.Code)
	}
	// Output:
	// false true
	// true true
	// create namespaces 0
	// create namespaces 409
}

// region.Each reads a namespace in two control planes, one of which is
// unreachable.
func ExampleNewRing() {
	ring := regiontest.NewRing("eu", "us")
	defer ring.Close()
	ring.Partition("us", true)
	ctx := context.Background()
	results, err := region.Each(ctx, ring, "read the namespace default", region.BestEffort(), func(ctx context.Context, c *region.Conn) (string, error) {
		ns, err := c.Dynamic().Resource(namespaces).Get(ctx, "default", metav1.GetOptions{})
		if err != nil {
			return "", err
		}
		return ns.GetName(), nil
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	for o := range results.All() {
		fmt.Println(o.Peer, o.Value, o.Err != nil)
	}
	fmt.Println("complete:", results.Complete())
	// Output:
	// eu default false
	// us  true
	// complete: false
}
