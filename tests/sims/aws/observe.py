"""What boto3 sees and does in a moto server.

argv: its URL, the authority that signed its certificate, access key id, secret key, `state` or `terminate`,
instance id. Prints the state's name.
"""
import sys

import boto3

_, url, authority, key, secret, what, instance = sys.argv
ec2 = boto3.client(
    "ec2",
    region_name="eu-west-1",
    endpoint_url=url,
    verify=authority,
    aws_access_key_id=key,
    aws_secret_access_key=secret,
)
if what == "terminate":
    ec2.terminate_instances(InstanceIds=[instance])
print(ec2.describe_instances(InstanceIds=[instance])["Reservations"][0]["Instances"][0]["State"]["Name"])
