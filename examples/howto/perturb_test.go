// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package howto_test

import (
	"context"
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"

	"github.com/atoll-dev/atoll/region/regiontest"
	"github.com/atoll-dev/atoll/region/regiontest/perturb"
)

// greeting is a user who asks for a greeting, and then for another name.
func greeting() perturb.Scenario {
	ask := func(name string) func(context.Context, perturb.Access) error {
		return func(ctx context.Context, access perturb.Access) error {
			client, err := dynamic.NewForConfig(access("server"))
			if err != nil {
				return err
			}
			user := metav1.ApplyOptions{FieldManager: "user", Force: true}
			_, err = client.Resource(configMaps).Namespace("default").Apply(ctx, "ada", greetingFor(name), user)
			return err
		}
	}
	return perturb.Scenario{
		Servers: func() (map[string]perturb.Server, error) {
			return map[string]perturb.Server{"server": regiontest.NewServer(regiontest.Options{})}, nil
		},
		Loops: []perturb.Loop{{Name: "greeter", Run: func(ctx context.Context, access perturb.Access) error {
			return greet(ctx, access("server"))
		}}},
		Script: []perturb.Step{{Name: "ask", Do: ask("Ada")}, {Name: "rename", Do: ask("Ada Lovelace")}},
		Holds: func(ctx context.Context, access perturb.Access) error {
			client, err := dynamic.NewForConfig(access("server"))
			if err != nil {
				return err
			}
			obj, err := client.Resource(configMaps).Namespace("default").Get(ctx, "ada", metav1.GetOptions{})
			if err != nil {
				return err
			}
			if data := obj.Object["data"].(map[string]any); data["greeting"] != "Hello Ada Lovelace" {
				return fmt.Errorf("the greeting is %q", data["greeting"])
			}
			return nil
		},
	}
}

// Each fault happens at each write of the greeter.
func TestGreeter(t *testing.T) { perturb.Explore(t, greeting(), perturb.Options{Pairs: 5}) }

// A plan that once failed is kept as a test: the greeter crashes after its second update, before it reads the answer.
func TestGreeterAfterACrash(t *testing.T) {
	perturb.Replay(t, greeting(), perturb.Plan{
		{Kind: perturb.CrashAfter, At: perturb.Point{Loop: "greeter", Server: "server", Verb: "update", Resource: "configmaps", Namespace: "default", Name: "ada", N: 2}},
	})
}
