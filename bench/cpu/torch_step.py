# One training step of a Qwen3-shaped model in eager PyTorch, the peer of BenchmarkStep in train/:
#
#	pip install torch; python bench/cpu/torch_step.py THREADS main|10m
#
# Prints the processor time and wall time of a step (best of 5 times 3 steps) as JSON. It keeps every activation.
import sys,time,math,json
import torch, torch.nn as nn, torch.nn.functional as F
threads=int(sys.argv[1]); size=sys.argv[2]
torch.set_num_threads(threads)
L,H,A,G,D,Fm,V,B,S = {"main":(4,128,4,2,32,384,2048,8,256),"10m":(8,256,8,4,32,768,8192,8,256)}[size]
torch.manual_seed(1)
class Norm(nn.Module):
    def __init__(s,n): super().__init__(); s.w=nn.Parameter(torch.ones(n))
    def forward(s,x): return F.rms_norm(x,(x.shape[-1],),s.w,1e-6)
def rope(x,c,s):
    a,b=x.chunk(2,-1); return torch.cat((a*c-b*s,b*c+a*s),-1)
class Block(nn.Module):
    def __init__(s):
        super().__init__()
        s.n1,s.n2,s.qn,s.kn=Norm(H),Norm(H),Norm(D),Norm(D)
        s.q=nn.Linear(H,A*D,bias=False);s.k=nn.Linear(H,G*D,bias=False);s.v=nn.Linear(H,G*D,bias=False);s.o=nn.Linear(A*D,H,bias=False)
        s.g=nn.Linear(H,Fm,bias=False);s.u=nn.Linear(H,Fm,bias=False);s.d=nn.Linear(Fm,H,bias=False)
    def forward(s,x,c,sn):
        h=s.n1(x)
        q=rope(s.qn(s.q(h).view(B,S,A,D)).transpose(1,2),c,sn)
        k=rope(s.kn(s.k(h).view(B,S,G,D)).transpose(1,2),c,sn)
        v=s.v(h).view(B,S,G,D).transpose(1,2)
        o=F.scaled_dot_product_attention(q,k,v,is_causal=True,enable_gqa=True)
        x=x+s.o(o.transpose(1,2).reshape(B,S,A*D))
        h=s.n2(x)
        return x+s.d(F.silu(s.g(h))*s.u(h))
class M(nn.Module):
    def __init__(s):
        super().__init__(); s.e=nn.Embedding(V,H); s.b=nn.ModuleList(Block() for _ in range(L)); s.n=Norm(H)
        p=torch.arange(S)[:,None]*(1e4**(-torch.arange(D//2)/(D//2)))[None]
        s.register_buffer("c",p.cos());s.register_buffer("s",p.sin())
    def forward(s,x,y):
        h=s.e(x)
        for b in s.b: h=b(h,s.c,s.s)
        return F.cross_entropy((s.n(h)@s.e.weight.T).view(-1,V),y.view(-1))
m=M(); opt=torch.optim.AdamW(m.parameters(),lr=1e-3,betas=(.9,.95),weight_decay=.1)
x=torch.randint(V,(B,S));y=torch.randint(V,(B,S))
def step():
    opt.zero_grad(set_to_none=True); l=m(x,y); l.backward(); torch.nn.utils.clip_grad_norm_(m.parameters(),1.0); opt.step()
for _ in range(3): step()
best=1e9;wall=1e9
for _ in range(5):
    t=time.process_time();w=time.perf_counter()
    for _ in range(3): step()
    best=min(best,(time.process_time()-t)/3); wall=min(wall,(time.perf_counter()-w)/3)
print(json.dumps(dict(torch=torch.__version__,threads=threads,size=size,params=sum(p.numel() for p in m.parameters()),cpu_s=best,wall_s=wall,tok_s_cpu=B*S/best)))
