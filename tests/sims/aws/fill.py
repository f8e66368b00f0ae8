"""Fills a moto server: three instances and three keys, one of which may not stop anything. From then on
the server checks signatures and policies.

argv: its URL, the authority that signed its certificate. Prints one JSON object.
"""
import json
import ssl
import sys
import urllib.request

import boto3

_, url, authority = sys.argv
anybody = {"aws_access_key_id": "x", "aws_secret_access_key": "x"}
place = {"region_name": "eu-west-1", "endpoint_url": url, "verify": authority}
iam = boto3.client("iam", **anybody, **place)


def key(user, actions):
    iam.create_user(UserName=user)
    statement = {"Effect": "Allow", "Resource": "*", "Action": actions}
    policy = json.dumps({"Version": "2012-10-17", "Statement": [statement]})
    iam.put_user_policy(UserName=user, PolicyName="fence", PolicyDocument=policy)
    made = iam.create_access_key(UserName=user)["AccessKey"]
    return [made["AccessKeyId"], made["SecretAccessKey"]]


described = "ec2:DescribeInstances"
keys = {
    "fence": key("fence", [described, "ec2:StopInstances", "ec2:StartInstances", "ec2:RebootInstances"]),
    "reader": key("reader", [described]),
    "observer": key("observer", [described, "ec2:TerminateInstances"]),
}
ec2 = boto3.client("ec2", **anybody, **place)
run = ec2.run_instances(ImageId="ami-12c6146b", MinCount=3, MaxCount=3)["Instances"]
zone = run[0]["Placement"]["AvailabilityZone"]
context = ssl.create_default_context(cafile=authority)
check = urllib.request.Request(url + "/moto-api/reset-auth", data=b"0", method="POST")
check.add_header("Content-Type", "text/plain")
with urllib.request.urlopen(check, context=context) as answer:
    answer.read()
print(json.dumps({"instances": [one["InstanceId"] for one in run], "zone": zone, "keys": keys}))
