// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package howto_test

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
)

// greet is the controller under test. It gives each ConfigMap with a name in its data a greeting, until ctx ends.
func greet(ctx context.Context, config *rest.Config) error {
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return err
	}
	for {
		_ = greetOnce(ctx, client.Resource(configMaps).Namespace("default")) // the next round retries
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(10 * time.Second):
		}
	}
}

func greetOnce(ctx context.Context, client dynamic.ResourceInterface) error {
	list, err := client.List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for _, obj := range list.Items {
		data, _ := obj.Object["data"].(map[string]any)
		name, ok := data["name"].(string)
		if greeting := "Hello " + name; ok && data["greeting"] != greeting {
			data["greeting"] = greeting
			if _, err := client.Update(ctx, &obj, metav1.UpdateOptions{}); err != nil {
				return err
			}
		}
	}
	return nil
}
